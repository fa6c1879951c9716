"""The rules about features: tools, prompts, resources and skills that were added, removed or changed."""

from typing import Any, Final

import pytest

from axolotl_core.contract.changes import Impact
from axolotl_core.contract.lock import Lock, Terms, make_lock
from axolotl_core.contract.lock_diff import compare_locks
from tests.support.docs.tables import CONTRACT_RULES

B, R, C = Impact.BREAKING, Impact.RISKY, Impact.COMPATIBLE
INPUT: Final = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
TERMS: Final = Terms({"timeout_seconds": 30.0, "max_result_bytes": 1000, "task_support": "forbidden"}, (), "read")


def tool(name: str = "track", terms: Terms | None = TERMS, **members: Any) -> Lock:
    definition = {"name": name, "description": "Track an order.", "inputSchema": INPUT, **members}
    return make_lock([(definition, terms)], (), ())


def with_terms(**members: Any) -> Lock:
    values = {name: getattr(TERMS, name) for name in ("limits", "scopes", "toolset", "requires_approval")}
    return tool(terms=Terms(**{**values, **members}))


def limited(**limits: Any) -> Lock:
    return with_terms(limits={**TERMS.limits, **limits})


def hinted(**hints: Any) -> Lock:
    return tool(annotations=hints)


def prompt(*arguments: dict[str, Any], name: str = "apology") -> Lock:
    return make_lock((), [({"name": name, "arguments": list(arguments)}, TERMS)], ())


def resource(uri: str = "orders://all", **members: Any) -> Lock:
    key = "uriTemplate" if "{" in uri else "uri"
    return make_lock((), (), [({"name": "orders", key: uri, **members}, TERMS)])


def skill(digest: str, terms: Terms = TERMS) -> Lock:
    file = {"uri": "skill://returns/SKILL.md", "digest": digest, "size": 1}
    return make_lock((), (), (), [({"uri": file["uri"], "frontmatter": {}, "resources": [file]}, terms)])


OUTPUT: Final = {"type": "object", "properties": {"state": {"type": "string"}}}
TONE: Final = {"name": "tone"}
REQUIRED_TONE: Final = {"name": "tone", "required": True}

TABLE: Final[list[tuple[str, Lock, Lock, str, Impact]]] = [
    ("removed", tool(), Lock(), "feature-removed", B),
    ("added", Lock(), tool(), "feature-added", C),
    ("case", tool("track"), tool("Track"), "name-case-changed", R),
    ("output added", tool(), tool(outputSchema=OUTPUT), "output-schema-added", C),
    ("output removed", tool(outputSchema=OUTPUT), tool(), "output-schema-removed", B),
    ("tool set", tool(), with_terms(toolset="write"), "toolset-changed", B),
    ("no longer read-only", hinted(readOnlyHint=True), hinted(), "hint-lost", B),
    ("read-only", hinted(), hinted(readOnlyHint=True), "annotation-changed", R),
    ("destructive", hinted(destructiveHint=False), hinted(destructiveHint=True), "hint-lost", B),
    ("destructive by default", hinted(destructiveHint=False), hinted(), "hint-lost", B),
    ("not destructive", hinted(), hinted(destructiveHint=False), "annotation-changed", R),
    ("open world", hinted(openWorldHint=False), hinted(), "hint-lost", B),
    ("open world, read-only", hinted(openWorldHint=False, readOnlyHint=True), hinted(readOnlyHint=True),
     "hint-lost", B),
    ("said now", hinted(), hinted(openWorldHint=True), "annotation-changed", R),
    ("idempotent", hinted(idempotentHint=True), hinted(), "annotation-changed", R),
    ("scope added", tool(), with_terms(scopes=["orders"]), "scope-added", B),
    ("scope removed", with_terms(scopes=["orders"]), tool(), "scope-removed", R),
    ("approval added", tool(), with_terms(requires_approval=True), "approval-added", B),
    ("approval removed", with_terms(requires_approval=True), tool(), "approval-removed", R),
    ("timeout lowered", tool(), limited(timeout_seconds=10.0), "limit-lowered", R),
    ("timeout raised", tool(), limited(timeout_seconds=60.0), "limit-raised", C),
    ("size lowered", tool(), limited(max_result_bytes=10), "limit-lowered", R),
    ("size unlimited", tool(), limited(max_result_bytes=None), "limit-raised", C),
    ("concurrency limited", tool(), limited(max_concurrency=3), "limit-lowered", R),
    ("concurrency raised", limited(max_concurrency=3), limited(max_concurrency=4), "limit-raised", C),
    ("tasks offered", tool(), limited(task_support="optional"), "task-support-added", C),
    ("tasks required", tool(), limited(task_support="required"), "task-support-changed", B),
    ("tasks withdrawn", limited(task_support="optional"), tool(), "task-support-changed", B),
    ("page", tool(), tool(_meta={"ui": {"resourceUri": "ui://orders"}}), "page-changed", R),
    ("description", tool(), tool(description="Follow an order."), "text-changed", R),
    ("title", tool(), tool(title="Orders"), "text-changed", R),
    ("argument added", prompt(), prompt(TONE), "argument-added", C),
    ("required argument added", prompt(), prompt(REQUIRED_TONE), "argument-required", B),
    ("argument required", prompt(TONE), prompt(REQUIRED_TONE), "argument-required", B),
    ("argument optional", prompt(REQUIRED_TONE), prompt(TONE), "argument-optional", C),
    ("argument removed", prompt(TONE), prompt(), "argument-removed", B),
    ("argument described", prompt(TONE), prompt({**TONE, "description": "How."}), "text-changed", R),
    ("MIME type", resource(), resource(mimeType="text/csv"), "mime-type-changed", B),
    ("kind", resource(), make_lock((), (), [({"name": "orders", "uriTemplate": "orders://all"}, TERMS)]),
     "resource-kind-changed", B),
    ("cache hint", resource(), resource(cache={"ttl_seconds": 60.0, "scope": "public"}), "cache-hint-changed", C),
    ("resource annotations", resource(), resource(annotations={"priority": 1.0}), "annotation-changed", R),
    ("skill", skill("sha256:1"), skill("sha256:2"), "skill-changed", R),
    ("skill scope", skill("sha256:1"), skill("sha256:1", Terms({}, ["orders"], "read")), "scope-added", B),
    ("skill removed", skill("sha256:1"), Lock(), "feature-removed", B),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "rule", "impact"), [pytest.param(*row, id=name) for name, *row in TABLE]
)  # fmt: skip
def test_a_change_of_a_feature_has_a_class(old: Lock, new: Lock, rule: str, impact: Impact) -> None:
    """Exactly one change is found, with the rule and the class of the table."""
    [change] = compare_locks(old, new)
    assert (change.rule, change.impact) == (rule, impact)


def test_a_template_with_other_variables_is_another_one() -> None:
    """Clients fill in variables by name, so that the change is breaking."""
    changes = compare_locks(resource("orders://{id}"), resource("orders://{number}"))
    assert [(one.rule, one.feature, one.impact) for one in changes] == [
        ("feature-removed", "orders://{id}", B),
        ("feature-added", "orders://{number}", C),
    ]


def test_names_that_differ_only_in_case() -> None:
    """A name is written differently only once; another one of the same letters was removed."""
    old = Lock({**tool("track").tools, **tool("TRACK").tools})
    rules = [(one.rule, one.feature) for one in compare_locks(old, tool("Track"))]
    assert rules == [("feature-removed", "TRACK"), ("name-case-changed", "track")]


def test_uris_that_differ_in_case_are_different() -> None:
    """A URI has no other spelling than its own."""
    rules = [one.rule for one in compare_locks(resource("orders://all"), resource("orders://All"))]
    assert rules == ["feature-removed", "feature-added"]


def test_every_rule_is_found() -> None:
    """The table has each rule; those about schemas are in `test_schema_rules`."""
    assert CONTRACT_RULES.keys() - {row[3] for row in TABLE} == {"property-added", "property-removed", "values-changed"}


def test_a_schema_inside_a_tool() -> None:
    """Changes of schemas name the tool and the place in its entry."""
    changed = {**INPUT, "properties": {"number": {"type": "string"}}}
    [change] = compare_locks(tool(), tool(inputSchema=changed))
    assert (change.kind, change.feature, change.pointer) == ("tools", "track", "/input/properties/number")
    assert change.description == 'tool track: other values are allowed: type "integer" → "string"'


def test_the_worst_changes_come_first() -> None:
    """Changes are sorted by class, then by feature."""
    old = Lock(tools={**tool("a").tools, **tool("b").tools})
    new = Lock(tools={**tool("a", description="New.").tools, **tool("c", inputSchema={"type": "object"}).tools})
    assert [change.impact for change in compare_locks(old, new)] == [B, R, C]


def test_a_renamed_tool_is_compared_too() -> None:
    """A tool in another case is compared with the one that it was."""
    rules = {change.rule for change in compare_locks(tool(), tool("Track", description="New."))}
    assert rules == {"name-case-changed", "text-changed"}


def test_what_a_server_does_not_publish_is_not_compared() -> None:
    """A contract from the lists of a server has no limits, scopes, sets and approvals; the rest is compared."""
    assert compare_locks(tool(terms=None), with_terms(scopes=["orders"], toolset="write")) == []
    assert [one.rule for one in compare_locks(tool(terms=None, title="Old"), tool())] == ["text-changed"]


def test_output_in_the_form_of_older_revisions() -> None:
    """A server of an older revision publishes output that is not an object as a member of one; that is no change."""
    inner = {"type": "integer"}
    outer = {"type": "object", "properties": {"result": inner}, "required": ["result"], "x-fastmcp-wrap-result": True}
    assert compare_locks(tool(outputSchema=outer, terms=None), tool(outputSchema=inner)) == []
