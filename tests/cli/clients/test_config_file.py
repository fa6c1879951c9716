"""Edits of configuration files: nothing is lost, whatever the file looks like."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_cli.clients.config_file import InvalidConfigFile, JsonDocument, merge
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
    | st.text(max_size=8)
    | st.sampled_from(["http://x", "/* no */", "}", ",", "\\", "\ud83e\udd8e"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)
SERVERS = st.dictionaries(KEYS, VALUES, max_size=3).map(lambda one: {k: v for k, v in one.items() if k != "greeter"})
DOCUMENTS = st.tuples(st.dictionaries(KEYS, VALUES, max_size=4), st.none() | SERVERS, st.none() | st.lists(VALUES)).map(
    lambda parts: _document(*parts)
)
BOOLEANS = st.booleans()
BLANKS = st.sampled_from(
    [
        "",
        "",
        " ",
        "\n",
        "\r\n",
        "\t",
        "\n    ",
        " // a note, with }\n",
        "// http://x */\r\n",
        "/* one */",
        "/*\n two */ ",
    ]
)


def _document(others: dict[str, Any], servers: Any, inputs: Any) -> dict[str, Any]:
    """Put valid servers and inputs into a document."""
    document = {key: value for key, value in others.items() if key not in ("mcpServers", "servers", "inputs")}
    if servers is not None:
        document |= {"mcpServers": servers, "servers": servers}
    return document if inputs is None else {**document, "inputs": inputs}


@st.composite
def texts(draw: st.DrawFn, values: st.SearchStrategy[Any] = DOCUMENTS) -> str:
    """Format a document with comments and blanks, as a person might."""

    def blank() -> str:
        return draw(BLANKS)

    def write(value: Any) -> str:
        if isinstance(value, dict):
            pairs = [
                f"{blank()}{json.dumps(key)}{blank()}:{blank()}{write(one)}{blank()}" for key, one in value.items()
            ]
            return "{" + joined(pairs) + "}"
        if isinstance(value, list):
            return "[" + joined([f"{blank()}{write(one)}{blank()}" for one in value]) + "]"
        return json.dumps(value, ensure_ascii=draw(BOOLEANS))

    def joined(parts: list[str]) -> str:
        if not parts:
            return blank()
        return ",".join(parts) + (f",{blank()}" if draw(BOOLEANS) else "")

    document = draw(values)
    plain = draw(st.sampled_from([None, 2, 4, "\t"]))
    if draw(BOOLEANS):
        return json.dumps(document, indent=plain)
    return f"{blank()}{write(document)}{blank()}"


def comments_of(text: str) -> list[str]:
    """Find the comments of a text, in their order."""
    pieces = re.finditer(r'"(?:[^"\\]|\\.)*"|(//[^\r\n]*|/\*.*?\*/)', text, re.DOTALL)
    return [piece[1] for piece in pieces if piece[1]]


def is_within(old: str, new: str) -> bool:
    """Tell whether only blanks were removed from a text."""
    rest = iter(new)
    return all(character in rest for character in old if not character.isspace())


def plain(text: str) -> dict[str, Any]:
    """Parse a document."""
    return JsonDocument(text).value


@given(texts())
def test_nothing_is_lost(text: str) -> None:
    """All values and comments stay, in their order; the server is added."""
    old = plain(text)
    new_text = merge(text, ENTRY)
    new = plain(new_text)
    assert new["mcpServers"].pop("greeter") == SERVER
    if "mcpServers" not in old:
        assert new.pop("mcpServers") == {}
    assert json.dumps(new) == json.dumps(old)
    assert comments_of(new_text) == comments_of(text)
    assert is_within(text, new_text)


@given(texts())
def test_inputs_are_added(text: str) -> None:
    """Values that a client asks for are added to those that it asks for already."""
    old = plain(text)
    new_text = merge(text, ASKING)
    new = plain(new_text)
    assert new["inputs"] == [*ASKING.inputs, *old.get("inputs", [])]
    assert new["servers"]["greeter"] == ASKING.server
    assert comments_of(new_text) == comments_of(text)
    assert is_within(text, new_text)


@given(texts(), st.booleans())
def test_again_changes_nothing(text: str, force: bool) -> None:
    """An entry that is already there is not written a second time."""
    once = merge(text, ASKING)
    assert merge(once, ASKING, force=force) == once


@given(texts())
def test_another_server_is_replaced_alone(text: str) -> None:
    """Only the entry of that name is replaced; keys that its user added stay."""
    theirs = {"command": "other", "disabled": True}
    before = merge(text, ClientEntry("mcpServers", "greeter", theirs))
    with pytest.raises(ConfigurationError, match="different server 'greeter'"):
        merge(before, ENTRY)
    after = merge(before, ENTRY, force=True)
    old, new = plain(before), plain(after)
    assert new["mcpServers"]["greeter"] == {**SERVER, "disabled": True}
    old["mcpServers"]["greeter"] = new["mcpServers"]["greeter"]
    assert json.dumps(new) == json.dumps(old)
    assert comments_of(after) == comments_of(before)


@given(st.dictionaries(KEYS, VALUES), st.sampled_from([None, 0, 3, "\t"]))
def test_plain_json_is_parsed(value: dict[str, Any], indent: int | str | None) -> None:
    """JSON without comments has its usual meaning."""
    text = json.dumps(value, indent=indent)
    assert json.dumps(plain(text)) == json.dumps(json.loads(text))


@given(st.text(st.sampled_from("{}[]:,\"\\ \n/*0123456789.-+eEtruefalsn'u"), max_size=30))
def test_what_is_not_json_is_refused(text: str) -> None:
    """Texts without comments and trailing commas are parsed exactly if `json` parses them."""
    text = f'{{"a": {text}}}'
    try:
        found = plain(text)
    except InvalidConfigFile:
        found = None
    try:
        expected = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
    except ValueError:
        assert found is None or "/" in text or re.search(r",\s*[\]}]", text)
    else:
        assert found == expected


def _refuse(word: str) -> None:
    raise ValueError(word)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("twice")
    return dict(pairs)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "line 1 column 2"),
        ('{"a": 1\n "b": 2}', "line 2 column 2"),
        ("{'a': 1}", "line 1 column 2"),
        ('{"a": 1} {', "line 1 column 10"),
        ('{"a": /* }', "line 1 column 7"),
        ('{"a": "\n"}', "line 1 column 8"),
        ('{"a": "// \n"}', "line 1 column 11"),
        ('{"a": [,]}', "line 1 column 8"),
        ('{"a": [1,,]}', "line 1 column 10"),
        ('{"a": NaN}', "NaN is not JSON"),
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
    """A file that is not JSON, or cannot hold the entry, is refused with the place or the reason."""
    with pytest.raises(InvalidConfigFile, match=problem):
        merge(text, ASKING if '"servers"' in text else ENTRY)


def test_style_is_kept() -> None:
    """A new entry has the indentation and line ends of the file; comments stay on their lines."""
    before = '{\r\n\t// mine\r\n\t"mcpServers": {\r\n\t\t"a": {}, // first\r\n\t},\r\n\t"z": 1\r\n}\r\n'
    after = merge(before, ClientEntry("mcpServers", "b", {"command": "x"}))
    assert after == before.replace('": {\r\n', '": {\r\n\t\t"b": {\r\n\t\t\t"command": "x"\r\n\t\t},\r\n', 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "mcpServers": {\n    "b": {\n      "url": "x"\n    }\n  }\n}\n'),
        ("\ufeff{}", '\ufeff{\n  "mcpServers": {\n    "b": {\n      "url": "x"\n    }\n  }\n}'),
        ('{"a":1}', '{"mcpServers": {"b": {"url": "x"}}, "a":1}'),
        ('{"mcpServers": {}}', '{"mcpServers": {"b": {"url": "x"}}}'),
        (
            '{\n    "mcpServers": { }\n}\n',
            '{\n    "mcpServers": {\n        "b": {\n            "url": "x"\n        }\n    }\n}\n',
        ),
        (
            '{"mcpServers": {"a": {} // last\n}}',
            '{"mcpServers": {\n  "b": {\n    "url": "x"\n  },\n  "a": {} // last\n}}',
        ),
    ],
)
def test_small_files(before: str, after: str) -> None:
    """Empty files, files on one line and files with a byte order mark keep their form."""
    assert merge(before, ClientEntry("mcpServers", "b", {"url": "x"})) == after
