"""Names in settings that nothing has: of tools, tool sets, tags, roles and scopes."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from axolotl_core.features.spec import FeatureSpec
from axolotl_core.names import is_within_toolset, name_pattern, nearest
from axolotl_server.hosting.roles import Roles
from axolotl_server.settings.origins import Keys
from axolotl_server.settings.server import ServerSettings

_MAX_LISTED: Final = 10


class NamedThing(NamedTuple):
    """A name in the settings."""

    keys: Keys
    """The setting that contains the name."""
    kind: str
    name: str


def unknown_names(settings: ServerSettings, roles: Roles, specs: Sequence[FeatureSpec]) -> Iterator[tuple[Keys, str]]:
    """Find names that nothing has: the setting, and what is wrong with it."""
    named = [*_named_things(settings)]
    known = _known_names(settings, roles, specs) if named else {}
    for keys, kind, name in named:
        names = known.get(kind)
        if names is not None and not _is_known(name, names, keys):
            yield keys, f"{_problem(kind, name)}{_hint(name, names)}"


def _named_things(settings: ServerSettings) -> Iterator[NamedThing]:
    for name in settings.toolsets:
        yield NamedThing(("toolsets", name), "tool set", name)
    yield from _each(("approval", "tools"), "tool", settings.approval.tools)
    for name, quota in settings.quotas.rules.items():
        yield from _each(("quotas", "rules", name, "tools"), "feature", quota.tools)
        yield from _each(("quotas", "rules", name, "toolsets"), "tool set", quota.toolsets)
    for index, rule in enumerate(settings.authorization.rules):
        who, what = ("authorization", "rules", index, "who"), ("authorization", "rules", index, "what")
        yield from _each((*who, "roles"), "role", rule.who.roles)
        yield from _each((*who, "scopes"), "scope", rule.who.scopes)
        yield from _each((*what, "names"), "feature", rule.what.names)
        yield from _each((*what, "toolsets"), "tool set", rule.what.toolsets)
        yield from _each((*what, "tags"), "tag", rule.what.tags)


def _each(keys: Keys, kind: str, names: Iterable[str] | None) -> Iterator[NamedThing]:
    return (NamedThing(keys, kind, name) for name in sorted(names or ()))


def _known_names(settings: ServerSettings, roles: Roles, specs: Sequence[FeatureSpec]) -> Mapping[str, Collection[str]]:
    """List what can be named, by kind. Roles and scopes are known only if all callers are in the settings."""
    tools = [tool.name for tool in roles.tools]
    known: dict[str, Collection[str]] = {
        "tool": tools,
        "feature": dict.fromkeys([*(spec.name for spec in specs), *tools]),
        "tool set": roles.known_sets,
        "tag": dict.fromkeys(tag for spec in specs for tag in spec.feature.tags),
    }
    auth = settings.auth
    others = auth.issuers or auth.introspection_url
    if auth.api_keys and not others and roles.token_verifier is None:
        callers = [settings.stdio.caller, *(key.principal(name) for name, key in auth.api_keys.items())]
        known["role"] = {role for caller in callers for role in caller.roles}
        known["scope"] = {scope for caller in callers for scope in caller.scopes}
    return known


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


def _hint(name: str, known: Collection[str]) -> str:
    near = nearest(name, known)
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; known: {', '.join(sorted(known))}" if 0 < len(known) <= _MAX_LISTED else ""
