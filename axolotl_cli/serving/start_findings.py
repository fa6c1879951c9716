"""Settings and environment variables that have no effect, which a start logs and `check` reports."""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from axolotl_cli.target import ChosenTarget
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.names import did_you_mean
from axolotl_server.configuration.environment import unknown_variables
from axolotl_server.host import ServerHost
from axolotl_server.settings.server import ServerSettings

if TYPE_CHECKING:
    from axolotl_server.features.catalogue import Catalogue
    from axolotl_server.hosting.assembly import ServerAssembly

_log: Final = logging.getLogger("axolotl")


def warn_about_settings(host: ServerHost) -> None:
    """Log which settings of a started server have no effect."""
    for _, problem in settings_of_unknown_tools(host.settings, [tool.name for tool in host.roles.tools]):
        _log.warning("%s", problem)
    if host.settings.quotas.rules or host.settings.authorization.rules:
        catalogues: list[Catalogue[Any, Any]] = [host.catalogue, host.prompts, host.resources, host.templates]
        specs = [binding.spec for catalogue in catalogues for binding in catalogue.bindings()]
        for problem in idle_rules(host.assembly, specs):
            _log.warning("%s", problem)


def warn_about_variables(chosen: ChosenTarget) -> None:
    """Log which environment variables begin with `AXOLOTL_` and have no effect."""
    file = chosen.file.env_file
    if any(unknown_variables([*os.environ, *(() if file is None else file.variables)])):
        from axolotl_cli.views.setting_values import unknown_variables_of

        for text in unknown_variables_of(chosen):
            _log.warning("%s", text)


def settings_of_unknown_tools(settings: ServerSettings, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Find settings for tools that do not exist: the name, and what is wrong with it."""
    known = list(names)
    folded = {name.casefold() for name in known}
    for name in settings.tools.overrides:
        if name.casefold() not in folded:
            yield name, f"Setting tools.{name} is for a tool that does not exist{did_you_mean(name, known)}"


def idle_rules(assembly: "ServerAssembly", specs: Sequence[FeatureSpec]) -> Iterator[str]:
    """Find rules that match no feature of the server."""
    from axolotl_server.layers.quota import QuotaLayer  # few servers have quotas

    authorization = assembly.authorization
    if authorization is not None and authorization.policy is not None:
        yield from (_idle("authorization", name) for name in authorization.policy.idle(specs))
    for layer in assembly.layers:
        if isinstance(layer, QuotaLayer):
            yield from (_idle("quotas", rule.name) for rule in layer.idle)


def _idle(section: str, name: str) -> str:
    return f"Rule {name!r} of {section} matches no feature of this server: check the names in it"
