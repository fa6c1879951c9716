"""The contract of a server: the lock of its features."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from axolotl_core.contract.lock import MAX_LOCK_BYTES, Lock, Terms, make_lock, read_lock
from axolotl_core.errors import ConfigurationError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.protocol.versions import LATEST_STATELESS_REVISION
from axolotl_server.calls.binding import Binding
from axolotl_server.layers.approval import ApprovalLayer
from axolotl_server.protocol.eras.presentation import resource_definition, tool_definition

if TYPE_CHECKING:
    from axolotl_server.hosting.assembly import ServerAssembly


def lock_of(assembly: "ServerAssembly") -> Lock:
    """Freeze all features that a server offers, whoever may use them.

    Raises:
        ConfigurationError: if schemas refer to other documents.
    """
    revision = LATEST_STATELESS_REVISION
    tools = ((to_builtins(tool_definition(one.spec, revision)), _terms(one)) for one in assembly.tools.bindings())
    prompts = assembly.prompts
    described = ((to_builtins(prompts.describe(one, revision)), _terms(one)) for one in prompts.bindings())
    return make_lock(tools, described, _resources(assembly), **dict(_added(assembly)))


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


def _resources(assembly: "ServerAssembly") -> Iterator[tuple[dict[str, Any], Terms]]:
    for one in (*assembly.resources.bindings(), *assembly.templates.bindings()):
        feature: Any = one.spec.feature
        if one.spec.kind != "resource":
            continue  # what an extension adds lists its files with their digests
        definition = to_builtins(resource_definition(feature, LATEST_STATELESS_REVISION))
        if feature.cache is not None:
            definition["cache"] = to_builtins(feature.cache)
        yield definition, _terms(one)


def _added(assembly: "ServerAssembly") -> Iterator[tuple[str, list[tuple[dict[str, Any], Terms]]]]:
    """Return the features of the kinds that extensions add, by the list that clients find them in."""
    for catalogue in assembly.added_catalogues:
        described = ((catalogue.describe(one, LATEST_STATELESS_REVISION), _terms(one)) for one in catalogue.bindings())
        yield catalogue.field, [(to_builtins(definition), terms) for definition, terms in described]


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
