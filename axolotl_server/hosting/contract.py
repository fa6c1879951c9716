"""The contract of a server: the lock of its features."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from axolotl_core.contract.lock import MAX_LOCK_BYTES, Lock, Terms, make_lock, read_lock
from axolotl_core.errors import ConfigurationError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_server.calls.binding import Binding
from axolotl_server.features.catalogue import Catalogue
from axolotl_server.layers.approval import ApprovalLayer

if TYPE_CHECKING:
    from axolotl_server.hosting.assembly import ServerAssembly


def lock_of(assembly: "ServerAssembly") -> Lock:
    """Freeze all features that a server offers, whoever may use them.

    Raises:
        ConfigurationError: if schemas refer to other documents.
    """
    added = {one.field: _frozen(one) for one in assembly.added_catalogues}
    resources = chain(_frozen(assembly.resources, "resource"), _frozen(assembly.templates, "resource"))
    return make_lock(_frozen(assembly.tools), _frozen(assembly.prompts), resources, **added)


def _frozen(catalogue: Catalogue[Any, Any], kind: str | None = None) -> Iterator[tuple[dict[str, Any], Terms]]:
    """Describe the features of a catalogue, or those of one kind: an extension lists its resources by itself."""
    for one in catalogue.bindings():
        if kind in (None, one.spec.kind):
            definition = to_builtins(catalogue.describe(one, LATEST_STATELESS_REVISION))
            if kind == "resource" and one.spec.feature.cache is not None:
                definition["cache"] = to_builtins(one.spec.feature.cache)
            yield definition, _terms(one)


def read_lock_file(path: Path) -> Lock:
    """Read a lock file, or raise ConfigurationError."""
    try:
        if path.stat().st_size > MAX_LOCK_BYTES:
            raise ConfigurationError(f"{path} is larger than {MAX_LOCK_BYTES} bytes, so it cannot be a lock file")
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigurationError(f"{path} does not exist: write it with axolotl contract freeze") from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    return read_lock(data, str(path))


def _terms(binding: Binding[FeatureSpec]) -> Terms:
    spec = binding.spec
    limits = {
        "timeout_seconds": float(spec.limits.timeout_seconds),
        "max_result_bytes": spec.limits.max_result_bytes,
        "max_concurrency": spec.limits.max_concurrency,
        "task_support": getattr(spec.feature, "task_support", None),
    }
    requires_approval = any(isinstance(layer, ApprovalLayer) for layer in binding.layers)
    return Terms(limits, spec.feature.scopes, spec.toolset, requires_approval)
