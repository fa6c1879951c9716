"""The comparison of two locks: changes of features, and of the schemas in them."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from axolotl_core.contract.changes import ContractChange, Impact
from axolotl_core.contract.lock import Entry, Lock
from axolotl_core.contract.schema_compare import compare_schemas
from axolotl_core.schema import JsonSchema, wrapped

Found: TypeAlias = Iterator[ContractChange]

_B, _R, _C = Impact.BREAKING, Impact.RISKY, Impact.COMPATIBLE
_TRUSTED: Final = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
"""The hints by which clients approve calls without a question; they are no defaults, so that a tool must say them."""
_LIMITS: Final = ("timeout_seconds", "max_result_bytes", "max_concurrency")


def compare_locks(old: Lock, new: Lock) -> list[ContractChange]:
    """Find all changes, the worst first. A member that one of the locks does not know is not compared."""
    if old.digest == new.digest:
        return []
    found: list[ContractChange] = []
    for kind, entries in old.kinds.items():
        found.extend(_Comparison(kind, entries, new.kinds[kind]).run())
    order = list(Impact)
    return sorted(found, key=lambda one: (order.index(one.impact), one.kind, one.feature, one.pointer, one.rule))


class _Comparison:
    """The comparison of all features of one kind."""

    def __init__(self, kind: str, old: dict[str, Entry], new: dict[str, Entry]) -> None:
        self._kind, self._old, self._new = kind, old, new

    def run(self) -> Found:
        noun = self._kind.removesuffix("s")
        unknown = [name for name in self._new if name not in self._old]
        by_folded = {name.casefold(): name for name in unknown if self._kind in ("tools", "prompts")}
        for before, entry in self._old.items():
            after = before if before in self._new else by_folded.pop(before.casefold(), None)
            if after is None:
                yield self._change(_B, "feature-removed", before, "", f"the {noun} was removed", entry, None)
                continue
            if after != before:
                unknown.remove(after)
                message = f"the name {before} is written as {after} now; clients may look for it"
                yield self._change(_R, "name-case-changed", before, "", message, before, after)
            yield from self._compare(after, entry, self._new[after])
        for name in unknown:
            yield self._change(_C, "feature-added", name, "", f"the {noun} was added", None, self._new[name])

    def _change(self, impact: Impact, rule: str, name: str, pointer: str, *what: Any) -> ContractChange:
        """Make a change from a message, the old value and the new one."""
        return ContractChange(impact, rule, self._kind, name, pointer, *what)

    def _compare(self, name: str, old: Entry, new: Entry) -> Found:
        if old == new:
            return
        yield from self._compare_texts(name, old, new)
        yield from self._compare_terms(name, old, new)
        if self._kind == "tools":
            yield from self._compare_tool(name, old, new)
        elif self._kind == "prompts":
            yield from self._compare_prompt(name, old["arguments"], new["arguments"])
        elif self._kind == "resources":
            yield from self._compare_resource(name, old, new)
        elif old["digest"] != new["digest"]:
            digests = old["digest"], new["digest"]
            yield self._change(_R, "skill-changed", name, "/digest", "the files of the skill were changed", *digests)

    def _compare_texts(self, name: str, old: Entry, new: Entry, at: str = "") -> Found:
        for key in ("title", "description"):
            before, after = old.get(key), new.get(key)
            if (before or None) != (after or None):
                yield self._change(_R, "text-changed", name, f"{at}/{key}", f"the {key} was changed", before, after)

    def _compare_terms(self, name: str, old: Entry, new: Entry) -> Found:
        if "toolset" in old and "toolset" in new and old["toolset"] != new["toolset"]:
            sets = old["toolset"], new["toolset"]
            message = f"the tool set is {sets[1] or 'none'} instead of {sets[0] or 'none'}"
            yield self._change(_B, "toolset-changed", name, "/toolset", message, *sets)
        if "scopes" in old and "scopes" in new:
            before, after = set(old["scopes"]), set(new["scopes"])
            for scope in sorted(after - before):
                message = f"the scope {scope} is required now"
                yield self._change(_B, "scope-added", name, "/scopes", message, None, scope)
            for scope in sorted(before - after):
                message = f"the scope {scope} is no longer required"
                yield self._change(_R, "scope-removed", name, "/scopes", message, scope, None)
        if "limits" in old and "limits" in new:
            yield from self._compare_limits(name, old["limits"], new["limits"])

    def _compare_limits(self, name: str, old: Entry, new: Entry) -> Found:
        for key in _LIMITS:
            before, after = old.get(key), new.get(key)
            if before == after:
                continue
            lowered = before is None or (after is not None and after < before)
            rule, impact = ("limit-lowered", _R) if lowered else ("limit-raised", _C)
            message = f"{key}: {'none' if before is None else before} → {'none' if after is None else after}"
            yield self._change(impact, rule, name, f"/limits/{key}", message, before, after)
        support = old.get("task_support", "forbidden"), new.get("task_support", "forbidden")
        if support[0] != support[1]:
            is_new = support == ("forbidden", "optional")
            rule, impact = ("task-support-added", _C) if is_new else ("task-support-changed", _B)
            message = f"task support: {support[0]} → {support[1]}"
            yield self._change(impact, rule, name, "/limits/task_support", message, *support)

    def _compare_tool(self, name: str, old: Entry, new: Entry) -> Found:
        yield from self._compare_hints(name, old.get("annotations", {}), new.get("annotations", {}))
        if "requires_approval" in old and "requires_approval" in new:
            approval = old["requires_approval"], new["requires_approval"]
            if approval[0] != approval[1]:
                rule, impact, word = (
                    ("approval-added", _B, "now") if approval[1] else ("approval-removed", _R, "no longer")
                )
                message = f"calls {word} need approval"
                yield self._change(impact, rule, name, "/requires_approval", message, *approval)
        if old.get("page") != new.get("page"):
            pages = old.get("page"), new.get("page")
            yield self._change(_R, "page-changed", name, "/page", "the page for results was changed", *pages)
        yield from self._compare_schema(name, "input", old["input"], new["input"])
        before, after = old.get("output"), new.get("output")
        if before is None and after is not None:
            yield self._change(_C, "output-schema-added", name, "/output", "an output schema was added", None, after)
        elif before is not None and after is None:
            message = "the output schema was removed"
            yield self._change(_B, "output-schema-removed", name, "/output", message, before, None)
        elif before is not None and after is not None:
            yield from self._compare_schema(name, "output", *_equally_wrapped(before, after))

    def _compare_schema(self, name: str, side: Any, old: JsonSchema, new: JsonSchema) -> Found:
        for impact, rule, pointer, *what in compare_schemas(old, new, side):
            yield ContractChange(impact, rule, self._kind, name, f"/{side}{pointer}", *what)

    def _compare_hints(self, name: str, old: Entry, new: Entry) -> Found:
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) == new.get(key):
                continue
            is_harmless = key == "destructiveHint" and new.get("readOnlyHint") is True
            is_lost = key in _TRUSTED and old.get(key) is _TRUSTED[key] and not is_harmless
            rule, impact = ("hint-lost", _B) if is_lost else ("annotation-changed", _R)
            message = f"{key}: {_shown(old, key)} → {_shown(new, key)}"
            yield self._change(impact, rule, name, f"/annotations/{key}", message, old.get(key), new.get(key))

    def _compare_prompt(self, name: str, old: Entry, new: Entry) -> Found:
        for argument in sorted(old.keys() | new.keys()):
            at = f"/arguments/{argument}"
            if argument not in new:
                message = f"the argument {argument} was removed"
                yield self._change(_B, "argument-removed", name, at, message, old[argument], None)
                continue
            is_required = new[argument]["required"]
            if argument not in old:
                rule, impact = ("argument-required", _B) if is_required else ("argument-added", _C)
                message = f"the {'required' if is_required else 'optional'} argument {argument} was added"
                yield self._change(impact, rule, name, at, message, None, new[argument])
                continue
            if old[argument]["required"] != is_required:
                rule, impact = ("argument-required", _B) if is_required else ("argument-optional", _C)
                message = f"the argument {argument} is {'required' if is_required else 'optional'} now"
                yield self._change(impact, rule, name, f"{at}/required", message, not is_required, is_required)
            yield from self._compare_texts(name, old[argument], new[argument], at)

    def _compare_resource(self, name: str, old: Entry, new: Entry) -> Found:
        for key, rule, impact, what in (
            ("kind", "resource-kind-changed", _B, "the kind"),
            ("mimeType", "mime-type-changed", _B, "the MIME type"),
            ("annotations", "annotation-changed", _R, "annotations"),
        ):
            if old.get(key) != new.get(key):
                message = f"{what}: {_shown(old, key)} → {_shown(new, key)}"
                yield self._change(impact, rule, name, f"/{key}", message, old.get(key), new.get(key))
        if old["name"] != new["name"]:
            yield self._change(_R, "text-changed", name, "/name", "the name was changed", old["name"], new["name"])
        if "limits" in old and "limits" in new and old.get("cache") != new.get("cache"):
            caches = old.get("cache"), new.get("cache")
            yield self._change(_C, "cache-hint-changed", name, "/cache", "the cache hint was changed", *caches)


def _equally_wrapped(old: JsonSchema, new: JsonSchema) -> tuple[JsonSchema, JsonSchema]:
    """Give both output schemas the form of older revisions, if one of them comes from a server that uses these."""
    marks = ["x-fastmcp-wrap-result" in one for one in (old, new)]
    if marks[0] == marks[1]:
        return old, new
    return (old, wrapped(new)) if marks[0] else (wrapped(old), new)


def _shown(entry: Entry, key: str) -> str:
    return str(entry[key]) if key in entry else "none"
