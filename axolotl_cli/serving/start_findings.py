"""Settings and environment variables that have no effect, which a start logs and `check` reports."""

import logging
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from axolotl_cli.target import ChosenTarget
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.names import did_you_mean
from axolotl_server.host import ServerHost
from axolotl_server.hosting.roles import Roles
from axolotl_server.settings.environment import unknown_variables
from axolotl_server.settings.loading import LoadedSettings
from axolotl_server.settings.origins import Keys, dotted

if TYPE_CHECKING:
    from axolotl_server.features.catalogue import Catalogue
    from axolotl_server.hosting.assembly import ServerAssembly

_log: Final = logging.getLogger("axolotl")


def warn_about_settings(host: ServerHost) -> None:
    """Log which settings of a started server have no effect."""
    for _, problem in settings_without_effect(host):
        _log.warning("%s", problem)


def warn_about_variables(chosen: ChosenTarget) -> None:
    """Log which environment variables begin with `AXOLOTL_` and have no effect."""
    file = chosen.file.env_file
    if any(unknown_variables([*os.environ, *(() if file is None else file.variables)])):
        from axolotl_cli.views.setting_values import unknown_variables_of

        for text in unknown_variables_of(chosen):
            _log.warning("%s", text)


def settings_without_effect(host: ServerHost) -> Iterator[tuple[str | None, str]]:
    """Find settings that have no effect: the name of the tool if they are for one, and what is wrong."""
    yield from _settings_of_unknown_tools(host.loaded_settings, [tool.name for tool in host.roles.tools])
    settings = host.settings
    if settings.quotas.rules or settings.authorization.rules or settings.approval.tools or settings.toolsets:
        for problem in _useless_rules(host.loaded_settings, host.assembly, host.roles, specs_of(host)):
            yield None, problem


def specs_of(host: ServerHost) -> list[FeatureSpec]:
    """List what the policies of a server are about: its features, and the methods of its extensions."""
    catalogues: list[Catalogue[Any, Any]] = [*host.assembly.catalogues]
    specs = [binding.spec for catalogue in catalogues for binding in catalogue.bindings()]
    return [*specs, *host.assembly.extension_methods.specs]


def _settings_of_unknown_tools(loaded: LoadedSettings, known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Find settings for tools that do not exist: the name, and what is wrong with it."""
    folded = {name.casefold() for name in known}
    for name in loaded.settings.tools.overrides:
        if name.casefold() not in folded:
            hint, origin = did_you_mean(name, known), loaded.origin_of(("tools", name))
            yield name, f"Setting tools.{name} is for a tool that does not exist{hint} ({origin})"


def _useless_rules(
    loaded: LoadedSettings, assembly: "ServerAssembly", roles: Roles, specs: Sequence[FeatureSpec]
) -> Iterator[str]:
    """Find names in settings that nothing has, and rules that match no feature of the server."""
    from axolotl_cli.serving.unknown_names import unknown_names  # few servers have rules

    reported = set()
    for keys, problem in unknown_names(loaded.settings, roles, specs):
        reported.add(keys[:3])
        yield f"Setting {dotted(keys)}: {problem} ({loaded.origin_of(keys)})"
    for keys, name in _idle_rules(assembly, specs):
        if keys not in reported:
            yield (
                f"Rule {name!r} of {keys[0]} matches no feature of this server: check the names in it "
                f"({loaded.origin_of(keys)})"
            )


def _idle_rules(assembly: "ServerAssembly", specs: Sequence[FeatureSpec]) -> Iterator[tuple[Keys, str]]:
    """Find rules that match no feature of the server, by their settings."""
    from axolotl_server.layers.quota import QuotaLayer  # few servers have quotas

    authorization = assembly.authorization
    if authorization is not None and authorization.policy is not None:
        idle = authorization.policy.idle(specs)
        for index, rule in enumerate(assembly.settings.authorization.rules):
            if rule.name in idle:
                yield ("authorization", "rules", index), rule.name
    for layer in assembly.layers.inner:
        if isinstance(layer, QuotaLayer):
            yield from ((("quotas", "rules", rule.name), rule.name) for rule in layer.idle)
