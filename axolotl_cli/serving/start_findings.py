"""What a start finds: settings and environment variables without an effect, and features that are not in the lock."""

import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from axolotl_cli.target import ChosenTarget
from axolotl_core.errors import ConfigurationError
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.names import did_you_mean, is_within_toolset, name_pattern
from axolotl_server.host import ServerHost
from axolotl_server.hosting.roles import Roles
from axolotl_server.settings.environment import unknown_variables
from axolotl_server.settings.origins import Keys, dotted
from axolotl_server.settings.server import ServerSettings

_MAX_LISTED: Final = 10
_MAX_CHANGES: Final = 20

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


def require_lock(toolsets: Sequence[str], host: ServerHost) -> None:
    """Raise a ConfigurationError with all changes if the features of a server differ from the lock file."""
    from axolotl_core.contract.lock import LOCK_FILE
    from axolotl_core.contract.lock_diff import compare_locks
    from axolotl_server.hosting.contract import lock_of, read_lock_file

    frozen, actual = read_lock_file(Path(LOCK_FILE)).select(toolsets), lock_of(host.assembly)
    if frozen.digest == actual.digest:
        return
    changes = [f"{change.description} ({change.impact})" for change in compare_locks(frozen, actual)]
    if len(changes) > _MAX_CHANGES:
        changes[_MAX_CHANGES:] = [f"… and {len(changes) - _MAX_CHANGES} more: axolotl contract diff lists all changes"]
    raise ConfigurationError(
        f"The features differ from {LOCK_FILE}, so the server does not start with --locked: run axolotl contract "
        "freeze, or serve the code that the file describes",
        *(changes or ["No caller notices the difference, but the lock file is not up to date"]),
    )


def settings_without_effect(host: ServerHost) -> Iterator[tuple[str | None, str]]:
    """Find settings that have no effect: the name of the tool if they are for one, and what is wrong."""
    loaded, settings = host.loaded_settings, host.settings
    tools = [tool.name for tool in host.roles.tools]
    folded = {name.casefold() for name in tools}
    for name in loaded.settings.tools.overrides:
        if name.casefold() not in folded:
            hint, origin = did_you_mean(name, tools), loaded.origin_of(("tools", name))
            yield name, f"Setting tools.{name} is for a tool that does not exist{hint} ({origin})"
    if settings.quotas.rules or settings.authorization.rules or settings.approval.tools or settings.toolsets:
        specs = specs_of(host)
        reported = set()
        for keys, problem in unknown_names(loaded.settings, host.roles, specs):
            reported.add(keys[:3])
            yield None, f"Setting {dotted(keys)}: {problem} ({loaded.origin_of(keys)})"
        for keys, name in _idle_rules(host, specs):
            if keys not in reported:
                problem = "matches no feature of this server: check the names in it"
                yield None, f"Rule {name!r} of {keys[0]} {problem} ({loaded.origin_of(keys)})"


def specs_of(host: ServerHost) -> list[FeatureSpec]:
    """List what the policies of a server are about: its features, and the methods of its extensions."""
    specs = [binding.spec for catalogue in host.assembly.catalogues for binding in catalogue.bindings()]
    return [*specs, *host.assembly.extension_methods.specs]


def _idle_rules(host: ServerHost, specs: Sequence[FeatureSpec]) -> Iterator[tuple[Keys, str]]:
    """Find rules that match no feature of the server, by their settings."""
    from axolotl_server.layers.quota import QuotaLayer  # few servers have quotas

    authorization = host.assembly.authorization
    if authorization is not None and authorization.policy is not None:
        idle = authorization.policy.idle(specs)
        for index, rule in enumerate(host.assembly.settings.authorization.rules):
            if rule.name in idle:
                yield ("authorization", "rules", index), rule.name
    for layer in host.assembly.layers.inner:
        if isinstance(layer, QuotaLayer):
            yield from ((("quotas", "rules", rule.name), rule.name) for rule in layer.idle)


def unknown_names(settings: ServerSettings, roles: Roles, specs: Sequence[FeatureSpec]) -> Iterator[tuple[Keys, str]]:
    """Find names of tools, tool sets, tags, roles and scopes that nothing has: the setting, and what is wrong."""
    tools = [tool.name for tool in roles.tools]
    known: dict[str, Collection[str]] = {
        "tool": tools,
        "feature": dict.fromkeys([*(spec.name for spec in specs), *tools]),
        "tool set": roles.known_sets,
        "tag": dict.fromkeys(tag for spec in specs for tag in spec.feature.tags),
    }
    auth = settings.auth
    if auth.api_keys and not (auth.issuers or auth.introspection_url) and roles.token_verifier is None:
        # Only then are all callers in the settings.
        callers = [settings.stdio.caller, *(key.principal(name) for name, key in auth.api_keys.items())]
        known["role"] = {role for caller in callers for role in caller.roles}
        known["scope"] = {scope for caller in callers for scope in caller.scopes}
    for keys, kind, used in _uses_of_names(settings):
        for name in sorted(used or ()):
            if kind in known and not _is_known(name, known[kind], keys):
                some = 0 < len(known[kind]) <= _MAX_LISTED
                listed = f"; known: {', '.join(sorted(known[kind]))}" if some else ""
                yield keys, f"{_problem(kind, name)}{did_you_mean(name, known[kind], listed)}"


def _uses_of_names(settings: ServerSettings) -> Iterator[tuple[Keys, str, Iterable[str] | None]]:
    """List the settings that contain names, with the kind of what they name."""
    yield from ((("toolsets", name), "tool set", [name]) for name in settings.toolsets)
    yield ("approval", "tools"), "tool", settings.approval.tools
    for name, quota in settings.quotas.rules.items():
        yield ("quotas", "rules", name, "tools"), "feature", quota.tools
        yield ("quotas", "rules", name, "toolsets"), "tool set", quota.toolsets
    for index, rule in enumerate(settings.authorization.rules):
        who, what = ("authorization", "rules", index, "who"), ("authorization", "rules", index, "what")
        yield (*who, "roles"), "role", rule.who.roles
        yield (*who, "scopes"), "scope", rule.who.scopes
        yield (*what, "names"), "feature", rule.what.names
        yield (*what, "toolsets"), "tool set", rule.what.toolsets
        yield (*what, "tags"), "tag", rule.what.tags


def _is_known(name: str, known: Collection[str], keys: Keys) -> bool:
    if name in known:
        return True
    if keys[-1] == "toolsets":
        return any(is_within_toolset(one, (name,)) for one in known)
    if keys[-1] in ("names", "tools"):
        matches = re.compile(name_pattern(name.casefold())).match
        return any(matches(one.casefold()) for one in known)
    return False


def _problem(kind: str, name: str) -> str:
    if kind in ("role", "scope"):
        return f"no API key has the {kind} {name!r}"
    what = "tool, prompt or resource" if kind == "feature" else kind
    return f"no {what} matches {name!r}" if {*name} & {*"*?"} else f"there is no {what} {name!r}"
