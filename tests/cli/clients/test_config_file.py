"""Changes of configuration files: no value is lost, whatever the file contains."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_cli.clients.config_file import InvalidConfigFile, merge
from axolotl_cli.clients.entry import ClientEntry
from axolotl_core.errors import ConfigurationError

SERVER = {"command": "/opt/python", "args": ["-m", "axolotl_cli", "serve"], "env": {"A": "ä"}}
ENTRY = ClientEntry("mcpServers", "greeter", SERVER)
ASKING = ClientEntry(
    "servers", "greeter", {"type": "stdio", **SERVER}, [{"type": "promptString", "id": "greeter-token"}]
)

KEYS = st.sampled_from(["mcpServers", "servers", "inputs", "greeter", "a", "b", 'quo"te', "ü", "//", ""])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-10, 10)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(["http://x", "/* no */", "}", ",", "\\", "\U0001f98e"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)
SERVERS = st.dictionaries(KEYS, VALUES, max_size=3).map(lambda one: {k: v for k, v in one.items() if k != "greeter"})
DOCUMENTS = st.tuples(st.dictionaries(KEYS, VALUES, max_size=4), st.none() | SERVERS, st.none() | st.lists(VALUES)).map(
    lambda parts: _document(*parts)
)


def _document(others: dict[str, Any], servers: Any, inputs: Any) -> dict[str, Any]:
    """Put valid servers and inputs into a document."""
    document = {key: value for key, value in others.items() if key not in ("mcpServers", "servers", "inputs")}
    if servers is not None:
        document |= {"mcpServers": servers, "servers": servers}
    return document if inputs is None else {**document, "inputs": inputs}


def merged(document: Any, entry: ClientEntry, *, force: bool = False) -> dict[str, Any]:
    """Add an entry to a document."""
    text = merge(json.dumps(document).encode(), entry, force=force)
    assert text is not None
    found: dict[str, Any] = json.loads(text)
    return found


@given(DOCUMENTS)
def test_nothing_is_lost(old: dict[str, Any]) -> None:
    """All values stay, in their order; the server is added."""
    new = merged(old, ENTRY)
    assert new["mcpServers"].pop("greeter") == SERVER
    if "mcpServers" not in old:
        assert new.pop("mcpServers") == {}
    assert json.dumps(new) == json.dumps(old)


@given(DOCUMENTS)
def test_inputs_are_added(old: dict[str, Any]) -> None:
    """Values that a client asks for are added to those that it asks for already."""
    new = merged(old, ASKING)
    assert json.dumps(new["inputs"]) == json.dumps([*old.get("inputs", []), *ASKING.inputs])
    assert new["servers"]["greeter"] == ASKING.server


@given(DOCUMENTS, st.booleans())
def test_again_changes_nothing(old: dict[str, Any], force: bool) -> None:
    """An entry that is already there is not written a second time."""
    assert merge(json.dumps(merged(old, ASKING)).encode(), ASKING, force=force) is None


@given(DOCUMENTS)
def test_another_server_is_replaced_alone(document: dict[str, Any]) -> None:
    """Only the entry of that name is replaced; keys that its user added stay."""
    old = merged(document, ClientEntry("mcpServers", "greeter", {"command": "other", "disabled": True}))
    with pytest.raises(ConfigurationError, match="different server 'greeter'"):
        merged(old, ENTRY)
    new = merged(old, ENTRY, force=True)
    assert new["mcpServers"]["greeter"] == {**SERVER, "disabled": True}
    old["mcpServers"]["greeter"] = new["mcpServers"]["greeter"]
    assert json.dumps(new) == json.dumps(old)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "line 1 column 2"),
        ('{"a": 1\n "b": 2}', "line 2 column 2"),
        ('{"a": 1} {', "line 1 column 10"),
        ('{"a": 1} // mine', "it is not JSON, or has comments"),
        ('{"a": 1, /* mine */ "b": 2}', "it is not JSON, or has comments"),
        ('{"a": [1,]}', "it is not JSON, or has comments"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1e999}', "it is not JSON"),
        ('{"a": "\\ud800"}', "it is not UTF-8"),
        ('{"a": 1, "a": 2}', 'the key "a" occurs twice in one object'),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "it is nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "limit"),
        ("[]", "it is not a JSON object"),
        ('{"mcpServers": []}', "mcpServers is not an object"),
        ('{"mcpServers": null}', "mcpServers is not an object"),
        ('{"servers": {}, "inputs": {}}', "inputs is not an array"),
    ],
)
def test_invalid_files_are_refused(text: str, problem: str) -> None:
    """A file with comments, or one that is not JSON or cannot hold the entry, is refused with the reason."""
    with pytest.raises(InvalidConfigFile, match=problem):
        merge(text.encode(), ASKING if '"servers"' in text else ENTRY)


def test_a_byte_order_mark_is_no_mistake() -> None:
    """Editors on Windows may write one."""
    assert merge(b"\xef\xbb\xbf{}", ENTRY) is not None
