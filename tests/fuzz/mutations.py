"""Mutations of messages: of the structure of their JSON, and of their bytes."""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final, TypeAlias


class Members(list[tuple[str, Any]]):
    """The members of an object. Unlike those of a dict, they can repeat."""


class Verbatim(bytes):
    """A piece of JSON, or of something like JSON, that is written as it is."""


Slot: TypeAlias = tuple[Any, int]
"""A place in the tree: a list or the members of an object, and an index."""

ODD_VALUES: Final = tuple(
    Verbatim(value)
    for value in (
        *(b"null", b"true", b"false", b"0", b"-0", b"-1", b"1.0", b"1e2", b"1E400", b"-1e-400", b"0.1", b"01", b"+1"),
        *(b"NaN", b"Infinity", b"-Infinity", b"9007199254740991", b"9007199254740993", b"-9223372036854775809"),
        *(b"18446744073709551616", b"1" * 400, b"0." + b"3" * 400, b"1e99999999999"),
        *(b'""', b'" "', b'"1"', b'"null"', rb'"\ud800"', rb'"\udc00\ud800"', rb'"\u0000"', rb'"\u001b[31m"'),
        *(
            rb'"\u202e\u200b"',
            b'"\t"',
            b'"\x00"',
            b'"\xff"',
            '"\U0001f600é"'.encode(),
            rb'"\x41"',
            b'"' + b"x" * 3000 + b'"',
        ),
        *(b'"../../etc/passwd"', b'"%2e%2e%2f"', b'"config://app"', b'"2026-07-28"', b'"2025-03-26"', b'"2199-01-01"'),
        *(
            b"[]",
            b"{}",
            b"[[]]",
            b'{"":{}}',
            b"[null]",
            b"[" + b"0," * 300 + b"0]",
            b'{"a":1,"a":2}',
            b"",
            b"undefined",
        ),
        *(b"[" * 40 + b"]" * 40, b"[" * 70 + b"]" * 70, b'{"a":' * 2000 + b"1" + b"}" * 2000),
    )
)
_ODD_NAMES: Final = ("", "_meta", "id", "method", "__proto__", "params", "Name", "\x00", "ｎame", "x" * 200, "task")


def mutate_structure(message: Any, random: Random, rounds: int) -> bytes:
    """Apply a number of mutations to the structure of a message and encode it."""
    root = [tree_of(message)]
    for _ in range(rounds):
        slots = list(_slots(root))
        if not slots:
            break
        holder, index = random.choice(slots)
        random.choice(_STRUCTURAL)(holder, index, random)
    return encode(root[0]) if root else b""


def mutate_bytes(data: bytes, random: Random, other: bytes) -> bytes:
    """Apply one mutation to the bytes of a message."""
    return random.choice(_TEXTUAL)(data, random, other)


def tree_of(value: Any) -> Any:
    """Return a copy of a JSON value in which the members of objects can repeat."""
    if isinstance(value, dict):
        return Members((key, tree_of(item)) for key, item in value.items())
    return [tree_of(item) for item in value] if isinstance(value, list | tuple) else value


def encode(value: Any) -> bytes:
    """Write a tree."""
    if isinstance(value, Verbatim):
        return value
    if isinstance(value, Members):
        return b"{%b}" % b",".join(b"%b:%b" % (json.dumps(name).encode(), encode(item)) for name, item in value)
    if isinstance(value, list):
        return b"[%b]" % b",".join(map(encode, value))
    return json.dumps(value).encode()


def _slots(holder: Any) -> Iterator[Slot]:
    for index, item in enumerate(holder):
        yield holder, index
        value = item[1] if isinstance(holder, Members) else item
        if isinstance(value, list):
            yield from _slots(value)


def _get(holder: Any, index: int) -> Any:
    return holder[index][1] if isinstance(holder, Members) else holder[index]


def _set(holder: Any, index: int, value: Any) -> None:
    holder[index] = (holder[index][0], value) if isinstance(holder, Members) else value


def _drop(holder: Any, index: int, random: Random) -> None:
    del holder[index]


def _duplicate(holder: Any, index: int, random: Random) -> None:
    holder.insert(random.randrange(len(holder) + 1), holder[index])


def _repeat_differently(holder: Any, index: int, random: Random) -> None:
    _duplicate(holder, index, random)
    _replace(holder, random.randrange(len(holder)), random)


def _replace(holder: Any, index: int, random: Random) -> None:
    _set(holder, index, random.choice(ODD_VALUES))


def _rename(holder: Any, index: int, random: Random) -> None:
    if isinstance(holder, Members):
        name, value = holder[index]
        holder[index] = (random.choice((*_ODD_NAMES, name.upper(), f" {name}", name[:-1])), value)


def _add(holder: Any, index: int, random: Random) -> None:
    value = random.choice(ODD_VALUES)
    holder.append((random.choice(_ODD_NAMES), value) if isinstance(holder, Members) else value)


def _wrap(holder: Any, index: int, random: Random) -> None:
    value = _get(holder, index)
    _set(holder, index, [value] if random.random() < 0.5 else Members([("value", value)]))


def _unwrap(holder: Any, index: int, random: Random) -> None:
    value = _get(holder, index)
    if isinstance(value, list) and value:
        _set(holder, index, _get(value, random.randrange(len(value))))


def _grow(holder: Any, index: int, random: Random) -> None:
    value = _get(holder, index)
    if isinstance(value, list) and len(value) < 50:
        value.extend(value[:] * random.choice((1, 3, 12)))
    elif isinstance(value, str):
        _set(holder, index, value * random.choice((2, 40, 700)))
    elif isinstance(value, int):
        _set(holder, index, value * random.choice((-1, 10**6, 10**18, 10**40)) + 1)


def _swap(holder: Any, index: int, random: Random) -> None:
    other = random.randrange(len(holder))
    mine, theirs = _get(holder, index), _get(holder, other)
    _set(holder, index, theirs)
    _set(holder, other, mine)


_STRUCTURAL: Final[tuple[Callable[[Any, int, Random], None], ...]] = (
    *(_replace, _replace, _replace, _drop, _duplicate, _repeat_differently),
    *(_rename, _add, _wrap, _unwrap, _grow, _swap),
)


def _cut(data: bytes, random: Random, other: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _flip(data: bytes, random: Random, other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(min(len(data), random.choice((1, 1, 2, 5)))):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _insert(data: bytes, random: Random, other: bytes) -> bytes:
    place = random.randrange(len(data) + 1)
    return data[:place] + random.choice(_SPLINTERS) + data[place:]


def _remove(data: bytes, random: Random, other: bytes) -> bytes:
    place = random.randrange(len(data) + 1)
    return data[:place] + data[place + random.choice((1, 2, 20)) :]


def _concatenate(data: bytes, random: Random, other: bytes) -> bytes:
    return data + random.choice((b"", b" ", b",", b"\r", b"\n")) + other


def _recode(data: bytes, random: Random, other: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    return random.choice((text.encode("utf-16"), text.encode("utf-8-sig"), text.encode("utf-7"), data[::-1]))


def _pad(data: bytes, random: Random, other: bytes) -> bytes:
    blank = random.choice((b" ", b"\t", b"\r", b"\x00", b"\x0b", "\u00a0".encode()))
    return blank * random.choice((1, 100)) + data + blank


_SPLINTERS: Final = (
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\x00",
    b"\x80",
    b"\xed\xa0\x80",
    b"\n",
    rb"\ud834",
    b"/*",
)
_TEXTUAL: Final[tuple[Callable[[bytes, Random, bytes], bytes], ...]] = (
    *(_cut, _flip, _flip, _insert, _insert, _remove, _concatenate, _recode, _pad),
)
