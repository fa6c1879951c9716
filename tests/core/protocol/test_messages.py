"""Incoming messages: decoding, and the error for each malformed message."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from axolotl_core.errors import InvalidEnvelope, InvalidParams, InvalidRequest, ParseError, ProtocolError
from axolotl_core.protocol.json_limits import has_duplicates
from axolotl_core.protocol.messages import (
    CLIENT_CAPABILITIES_KEY,
    MAX_NAME_LENGTH,
    PROTOCOL_VERSION_KEY,
    Head,
    Irregular,
    diagnose,
    explain_shape,
    read_head,
    usable_id,
)

LARGEST = 2**53 - 1


def raw_arguments(head: Head) -> bytes:
    """Return the arguments of a message that has some."""
    assert head.params.arguments is not UNSET
    return bytes(head.params.arguments)


def request(**changes: Any) -> dict[str, Any]:
    """Create a valid request with some members changed; `...` removes one."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}, **changes}
    return {key: value for key, value in message.items() if value is not ...}


def test_a_request_is_read() -> None:
    """One decode yields everything that determines the target of a message."""
    meta = {PROTOCOL_VERSION_KEY: "v", CLIENT_CAPABILITIES_KEY: {"a": {}}, "progressToken": "p", "other": [1]}
    params = {"name": "echo", "arguments": {"text": "ü", "n": [1, 2.50]}, "_meta": meta, "cursor": None}
    head = read_head(msgspec.json.encode(request(params=params, id="x")))
    assert (head.method, head.id, head.params.name) == ("tools/call", "x", "echo")
    assert msgspec.json.decode(raw_arguments(head)) == {"text": "ü", "n": [1, 2.5]}
    assert head.params.meta is not UNSET
    assert (head.params.meta.version, head.params.meta.progress_token) == ("v", "p")


def test_arguments_are_not_touched() -> None:
    """Validators get the arguments byte by byte as they were sent."""
    raw = b'{"a" : 1.0, "b":\t"\\u00e9", "a": 2e0}'
    head = read_head(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":%b}}' % raw)
    assert raw_arguments(head) == raw


def test_absent_differs_from_null() -> None:
    """A notification has no id; arguments that are missing are an empty object."""
    head = read_head(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert (head.id, head.params.name, head.params.meta) == (UNSET, UNSET, UNSET)
    assert head.params.arguments is UNSET


@pytest.mark.parametrize(
    "good",
    [
        pytest.param(0, id="zero"),
        pytest.param(-1, id="negative"),
        pytest.param(LARGEST, id="largest"),
        pytest.param(-LARGEST, id="smallest"),
        pytest.param("1", id="text"),
        pytest.param("", id="empty-text"),
        pytest.param("é" * MAX_NAME_LENGTH, id="longest-text"),
    ],
)
def test_an_id_keeps_its_type(good: int | str) -> None:
    """An ID is a string or an integer, and keeps its type."""
    read = read_head(msgspec.json.encode(request(id=good))).id
    assert read == good
    assert type(read) is type(good)
    assert usable_id({"id": good}) == good


BAD_IDS = [
    pytest.param(None, id="null"),
    pytest.param(True, id="boolean"),
    pytest.param(1.5, id="fraction"),
    pytest.param([1], id="array"),
    pytest.param({}, id="object"),
    pytest.param(LARGEST + 1, id="too-large"),
    pytest.param(-LARGEST - 1, id="too-small"),
    pytest.param(10**30, id="huge"),
    pytest.param("x" * (MAX_NAME_LENGTH + 1), id="too-long"),
]


@pytest.mark.parametrize("bad", BAD_IDS)
def test_an_id_that_may_not_be_echoed_is_not_usable(bad: Any) -> None:
    """An answer to such a message has no id."""
    assert usable_id({"id": bad}) is None
    assert usable_id({}) is None


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"  ", id="spaces"),
        pytest.param(b"hello", id="words"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"m"', id="cut-off"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"m"} {}', id="two-messages"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"m",}', id="trailing-comma"),
        pytest.param(b"{'jsonrpc':'2.0'}", id="single-quotes"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"a":NaN}}}', id="nan"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"a":01}}}', id="leading-zero"),
        pytest.param(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"m"}', id="byte-order-mark"),
        pytest.param('{"jsonrpc":"2.0","id":1,"method":"m"}'.encode("utf-16"), id="utf-16"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', id="bad-utf-8-in-the-method"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"a":"\xff"}}}', id="in-arguments"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"other":"\xc3\x28"}}', id="in-what-is-skipped"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"a\nb"}', id="raw-line-break"),
    ],
)
def test_invalid_json_or_utf_8_is_a_parse_error(data: bytes) -> None:
    """Broken bytes are refused wherever they stand."""
    with pytest.raises(Irregular):
        read_head(data)
    with pytest.raises(ParseError, match="not valid JSON in UTF-8"):
        diagnose(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[1,2", id="open-array"),
        pytest.param(b'["a', id="open-string"),
        pytest.param(b"5 5", id="two-values"),
        pytest.param(b'{"jsonrpc":1,"x":', id="wrong-before-broken"),
    ],
)
def test_a_wrong_shape_that_turns_out_broken_is_a_parse_error(data: bytes) -> None:
    """A message with an invalid shape may also be invalid JSON."""
    with pytest.raises(Irregular):
        read_head(data)
    with pytest.raises(ParseError, match="not valid JSON in UTF-8"):
        diagnose(data)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([], id="empty-batch"),
        pytest.param([request()], id="batch"),
        pytest.param("text", id="text"),
        pytest.param(5, id="number"),
        pytest.param(None, id="null"),
        pytest.param({}, id="empty-object"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "result": {}}, id="response"),
    ],
)
def test_json_of_another_shape_is_diagnosed(value: Any) -> None:
    """An invalid request is decoded again to explain the error."""
    data = msgspec.json.encode(value)
    with pytest.raises(Irregular):
        read_head(data)
    assert diagnose(data) == (value, None)


@pytest.mark.parametrize(
    ("message", "error", "text"),
    [
        pytest.param({}, InvalidRequest, '"jsonrpc"', id="empty"),
        pytest.param(request(jsonrpc=...), InvalidRequest, '"jsonrpc"', id="jsonrpc-missing"),
        pytest.param(request(jsonrpc="1.0"), InvalidRequest, '"jsonrpc"', id="jsonrpc-old"),
        pytest.param(request(jsonrpc=2.0), InvalidRequest, '"jsonrpc"', id="jsonrpc-number"),
        pytest.param(request(jsonrpc=None), InvalidRequest, '"jsonrpc"', id="jsonrpc-null"),
        pytest.param(request(method=...), InvalidRequest, '"method"', id="method-missing"),
        pytest.param(request(method=None), InvalidRequest, '"method"', id="method-null"),
        pytest.param(request(method=5), InvalidRequest, '"method"', id="method-number"),
        pytest.param(request(method="m" * 129), InvalidRequest, '"method"', id="method-too-long"),
        *(pytest.param(request(id=bad.values[0]), InvalidRequest, '"id"', id=f"id-{bad.id}") for bad in BAD_IDS),
        pytest.param(request(params=[]), InvalidParams, '"params"', id="params-array"),
        pytest.param(request(params=None), InvalidParams, '"params"', id="params-null"),
        pytest.param(request(params="x"), InvalidParams, '"params"', id="params-text"),
        pytest.param(request(params={"name": 5}), InvalidParams, '"name"', id="name-number"),
        pytest.param(request(params={"name": None}), InvalidParams, '"name"', id="name-null"),
        pytest.param(request(params={"name": "n" * 129}), InvalidParams, '"name"', id="name-too-long"),
        pytest.param(request(params={"_meta": []}), InvalidEnvelope, '"_meta"', id="meta-array"),
        pytest.param(request(params={"_meta": None}), InvalidEnvelope, '"_meta"', id="meta-null"),
        pytest.param(
            request(params={"_meta": {PROTOCOL_VERSION_KEY: 5}}), InvalidEnvelope, PROTOCOL_VERSION_KEY, id="version"
        ),
        pytest.param(
            request(params={"_meta": {"progressToken": 1.5}}), InvalidParams, '"progressToken"', id="token-fraction"
        ),
        pytest.param(
            request(params={"_meta": {"progressToken": None}}), InvalidParams, '"progressToken"', id="token-null"
        ),
        pytest.param(
            request(id=..., params={"_meta": {"progressToken": []}}), InvalidParams, '"progressToken"', id="no-id"
        ),
    ],
)
def test_every_malformed_shape_gets_its_error(message: dict[str, Any], error: type[ProtocolError], text: str) -> None:
    """A message that cannot be typed is explained by the first member that is wrong, by name."""
    data = msgspec.json.encode(message)
    with pytest.raises(Irregular):
        read_head(data)
    explained = explain_shape(diagnose(data).message)
    assert isinstance(explained, error)
    assert text in explained.message


@pytest.mark.parametrize(
    ("message", "text"),
    [
        pytest.param(request(jsonrpc=1, method=5, id=None, params=[]), '"jsonrpc"', id="jsonrpc-first"),
        pytest.param(request(method=5, id=None, params=[]), '"method"', id="then-method"),
        pytest.param(request(id=None, params=[]), '"id"', id="then-id"),
    ],
)
def test_the_outermost_error_is_reported(message: dict[str, Any], text: str) -> None:
    """If there are several errors, the most fundamental one is reported."""
    assert text in explain_shape(message).message


@pytest.mark.parametrize("arguments", [b"5", b"null", b"[]", b'"x"'])
def test_arguments_of_any_kind_are_left_to_the_method(arguments: bytes) -> None:
    """Arguments are not validated here."""
    head = read_head(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":%b}}' % arguments)
    assert raw_arguments(head) == arguments


names = st.sampled_from(["id", "a", "é", "ü\n", 'q"', "x/y", ":"])
members = st.lists(st.tuples(names, st.text(alphabet='a:"\\{},é', max_size=4)), max_size=4)


@given(st.tuples(members, members, members), st.sampled_from([",", ", "]), st.sampled_from([":", " : "]), st.booleans())
def test_duplicate_members_are_found(parts: tuple[Any, Any, Any], comma: str, colon: str, ascii: bool) -> None:
    """A message is irregular if and only if a name occurs twice in one of its objects, however it is written."""

    def written(pairs: list[tuple[str, str]]) -> str:
        quoted = ((json.dumps(name, ensure_ascii=ascii), value) for name, value in pairs)
        return "{" + comma.join(f"{name}{colon}{value}" for name, value in quoted) + "}"

    def texts(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [(name, json.dumps(value, ensure_ascii=ascii)) for name, value in pairs]

    top, params, meta = parts
    inner = [*texts(meta), ("progressToken", "1")]
    middle = [("name", '"n"'), *texts(params), ("_meta", written(inner)), ("arguments", '{"b":1}')]
    outer = [("jsonrpc", '"2.0"'), ("id", "1"), *texts(top), ("method", '"m"'), ("params", written(middle))]
    repeated = any(len(dict(pairs)) != len(pairs) for pairs in (inner, middle, outer))
    try:
        read_head(written(outer).encode())
        found = False
    except Irregular:
        found = True
    assert found == repeated


@given(members, members, st.sampled_from(["", 'a: \\n"é', "{:}"]), st.sampled_from([",", ", "]), st.booleans())
def test_duplicates_beside_a_long_text_are_found(
    outer: list[tuple[str, str]], inner: list[tuple[str, str]], long: str, comma: str, ascii: bool
) -> None:
    """The size of an object and the characters in its texts do not matter, nor does an object inside of it."""

    def written(pairs: list[tuple[str, str]], *more: str) -> str:
        texts = (":".join(json.dumps(text, ensure_ascii=ascii) for text in pair) for pair in pairs)
        return "{" + comma.join((*texts, *more)) + "}"

    text = f'"text":{json.dumps(long * 1000, ensure_ascii=ascii)}'
    flat, nested = written(outer, text), written(outer, text, f'"inner":{written(inner)}')
    repeated = [len(dict(pairs)) != len(pairs) for pairs in (outer, inner)]
    assert has_duplicates(flat.encode()) == repeated[0]
    assert has_duplicates(nested.encode()) == any(repeated)


def test_duplicates_without_a_name_are_found() -> None:
    """An empty name is a name, also beside a number that is too large to be decoded."""
    assert has_duplicates(b'{"": 1, "": 2}')
    assert has_duplicates(b'{"a": 1e999, "": 1, "": 2}')
    assert not has_duplicates(b'{"a": 1e999, "": 1}')


def test_escaped_colons_do_not_hide_duplicates() -> None:
    """A colon that a duplicate member has lost is not made up for by one that was written as an escape."""
    assert has_duplicates(b'{"b":"\\u003a","a":1,"a":2}')
    assert not has_duplicates(b'{"b":"\\u003a","a":1}')


def test_duplicates_in_the_usual_call_are_found() -> None:
    """A call without whitespace and unknown members is checked by its length."""
    meta = f'"_meta":{{"{PROTOCOL_VERSION_KEY}":"2026-07-28","{CLIENT_CAPABILITIES_KEY}":{{}}}}'
    usual = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add","arguments":{{"a":1}},{meta}}}}}'
    assert read_head(usual.encode()).params.name == "add"
    for one, two in (
        ('"id":1', '"id":1,"id":1'),
        ('"name":"add"', '"name":"add","name":"a"'),
        (meta, f"{meta},{meta}"),
    ):
        with pytest.raises(Irregular):
            read_head(usual.replace(one, two).encode())
