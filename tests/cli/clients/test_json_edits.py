"""Changes to files that people wrote: nothing is lost, whatever they look like."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axolotl_cli.clients.config_file import JsonObject, NotUnderstood, merged, parse_json_text
from axolotl_cli.clients.entry import ClientEntry
from axolotl_core.errors import ConfigurationError

ENTRY = {"command": "/opt/python", "args": ["-m", "axolotl_cli", "serve"], "env": {"A": "ä"}}
ADDITION = ClientEntry("mcpServers", "greeter", ENTRY)
ASKING = ClientEntry(
    "servers", "greeter", {"type": "stdio", **ENTRY}, [{"type": "promptString", "id": "greeter-token"}]
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
    """Put servers and inputs that make sense into a document, in the place of those that make none."""
    document = {key: value for key, value in others.items() if key not in ("mcpServers", "servers", "inputs")}
    if servers is not None:
        document |= {"mcpServers": servers, "servers": servers}
    return document if inputs is None else {**document, "inputs": inputs}


@st.composite
def texts(draw: st.DrawFn, values: st.SearchStrategy[Any] = DOCUMENTS) -> str:
    """Write a document as somebody could have written it."""

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
    """Tell whether nothing but blanks was taken out of a text."""
    rest = iter(new)
    return all(character in rest for character in old if not character.isspace())


def plain(text: str) -> dict[str, Any]:
    """Read a document."""
    root = parse_json_text(text)
    assert isinstance(root, JsonObject)
    return root.plain


@given(texts())
def test_nothing_is_lost(text: str) -> None:
    """Everything that was there is there in its order, the comments too, and the server besides."""
    old = plain(text)
    new_text = merged(text, ADDITION)
    new = plain(new_text)
    assert new["mcpServers"].pop("greeter") == ENTRY
    if "mcpServers" not in old:
        assert new.pop("mcpServers") == {}
    assert json.dumps(new) == json.dumps(old)
    assert comments_of(new_text) == comments_of(text)
    assert is_within(text, new_text)


@given(texts())
def test_inputs_are_added(text: str) -> None:
    """What a client asks for is added behind what it asks for already."""
    old = plain(text)
    new_text = merged(text, ASKING)
    new = plain(new_text)
    assert new["inputs"] == [*old.get("inputs", []), *ASKING.inputs]
    assert new["servers"]["greeter"] == ASKING.entry
    assert comments_of(new_text) == comments_of(text)
    assert is_within(text, new_text)


@given(texts(), st.booleans())
def test_again_changes_nothing(text: str, force: bool) -> None:
    """What is there already is not written a second time."""
    once = merged(text, ASKING)
    assert merged(once, ASKING, force=force) == once


@given(texts())
def test_another_server_is_replaced_alone(text: str) -> None:
    """Only the entry of that name is written anew; what its user added to it stays."""
    theirs = {"command": "other", "disabled": True}
    before = merged(text, ClientEntry("mcpServers", "greeter", theirs))
    with pytest.raises(ConfigurationError, match="another server 'greeter'"):
        merged(before, ADDITION)
    after = merged(before, ADDITION, force=True)
    old, new = plain(before), plain(after)
    assert new["mcpServers"]["greeter"] == {**ENTRY, "disabled": True}
    old["mcpServers"]["greeter"] = new["mcpServers"]["greeter"]
    assert json.dumps(new) == json.dumps(old)
    assert comments_of(after) == comments_of(before)


@given(VALUES, st.sampled_from([None, 0, 3, "\t"]))
def test_json_is_understood(value: Any, indent: int | str | None) -> None:
    """JSON without anything else means what it means to others."""
    text = json.dumps(value, indent=indent)
    assert json.dumps(parse_json_text(text).plain) == json.dumps(json.loads(text))


@given(st.text(st.sampled_from("{}[]:,\"\\ \n/*0123456789.-+eEtruefalsn'u"), max_size=30))
def test_what_is_no_json_is_refused(text: str) -> None:
    """Of texts without comments and spare commas, just those are understood that others understand."""
    try:
        found = parse_json_text(text)
    except NotUnderstood:
        found = None
    try:
        expected = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        assert found is None or "/" in text or re.search(r",\s*[\]}]", text)
    else:
        assert found is not None
        assert found.plain == expected


def _refuse(word: str) -> None:
    raise ValueError(word)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("twice")
    return dict(pairs)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "line 1, column 2: a key in double quotes was expected"),
        ('{"a": 1\n "b": 2}', "line 2, column 2: a comma or } was expected"),
        ("{'a': 1}", "line 1, column 2: a key in double quotes was expected"),
        ('{"a": 1} {', "line 1, column 10: nothing more was expected"),
        ('{"a": /* }', "line 1, column 7: a value was expected"),
        ('{"a": "\n"}', "line 1, column 7: a text that ends, without line breaks, was expected"),
        ('{"a": 1, "a": 2}', 'line 1, column 10: the key "a" stands here twice'),
        ('{"a": ' + "[" * 300 + "]" * 300 + "}", "line 1, column 207: this is nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "line 1, column 7: this number is too long"),
        ("[]", "it is no JSON object"),
        ('{"mcpServers": []}', "mcpServers is no object"),
        ('{"mcpServers": null}', "mcpServers is no object"),
        ('{"servers": {}, "inputs": {}}', "inputs is no array"),
    ],
)
def test_mistakes_have_a_place(text: str, problem: str) -> None:
    """A text that is not understood is refused with the place and what was expected there."""
    with pytest.raises(NotUnderstood) as refusal:
        merged(text, ASKING if '"servers"' in text else ADDITION)
    assert str(refusal.value) == problem


def test_style_is_kept() -> None:
    """A new entry looks like those around it, down to line ends and commas; comments stay at their lines."""
    before = '{\r\n\t// mine\r\n\t"mcpServers": {\r\n\t\t"a": {}, // first\r\n\t},\r\n\t"z": 1\r\n}\r\n'
    after = merged(before, ClientEntry("mcpServers", "b", {"command": "x"}))
    assert after == before.replace("// first\r\n", '// first\r\n\t\t"b": {\r\n\t\t\t"command": "x"\r\n\t\t},\r\n')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "mcpServers": {\n    "b": {\n      "url": "x"\n    }\n  }\n}\n'),
        ("\ufeff{}", '\ufeff{\n  "mcpServers": {\n    "b": {\n      "url": "x"\n    }\n  }\n}'),
        ('{"a":1}', '{"a":1, "mcpServers": {"b": {"url": "x"}}}'),
        ('{"mcpServers": {}}', '{"mcpServers": {"b": {"url": "x"}}}'),
        (
            '{\n    "mcpServers": { }\n}\n',
            '{\n    "mcpServers": {\n        "b": {\n            "url": "x"\n        }\n    }\n}\n',
        ),
        (
            '{"mcpServers": {"a": {} // last\n}}',
            '{"mcpServers": {"a": {}, // last\n  "b": {\n    "url": "x"\n  }\n}}',
        ),
    ],
)
def test_small_files(before: str, after: str) -> None:
    """Empty files, files in one line and files with a mark at their beginning are written as they are."""
    assert merged(before, ClientEntry("mcpServers", "b", {"url": "x"})) == after


def test_places() -> None:
    """The place of every value is known."""
    text = '/* a */ { "k" : [1, /* x */ 2] }'
    root = parse_json_text(text)
    assert isinstance(root, JsonObject)
    found = root.find("k")
    assert found is not None
    assert text[found.start : found.end] == "[1, /* x */ 2]"
    assert root.find("absent") is None
