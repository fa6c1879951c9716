"""The front matter of a `SKILL.md`, read from YAML in a form that all clients read in the same way."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from axolotl_core.errors import ConfigurationError
from axolotl_core.resources.skills import MAX_FRONT_MATTER_DEPTH

MAX_FRONT_MATTER_BYTES: Final = 64 * 1024

_BLOCK: Final = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_TAG: Final = "tag:yaml.org,2002:"
_TYPES: Final = frozenset(f"{_TAG}{name}" for name in ("map", "seq", "str", "int", "float", "bool", "null"))
_GUESSED: Final = frozenset(f"{_TAG}{name}" for name in ("timestamp", "merge", "value"))
"""Types that parsers of YAML 1.1 find in plain text."""
_AGREED: Final = {
    "int": re.compile(r"[-+]?(?:0|[1-9][0-9]*)"),
    "float": re.compile(r"[-+]?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+][0-9]+)?"),
    "bool": re.compile(r"true|True|TRUE|false|False|FALSE"),
    "null": re.compile(r"null|Null|NULL|~|"),
}
"""Plain scalars that YAML 1.1 and YAML 1.2 read in the same way."""
_NUMBER: Final = re.compile(
    r"[-+]?(?:[0-9]+|\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.inf|\.nan", re.I
)
"""Plain scalars that are numbers in YAML 1.2."""


def read_front_matter(page: bytes) -> dict[str, Any]:
    """Read the front matter of a `SKILL.md`, or raise ConfigurationError with what is wrong and where."""
    block = _BLOCK.match(page)
    if block is None:
        raise ConfigurationError("it does not begin with front matter: a line ---, YAML with name and description, ---")
    if len(block[1]) > MAX_FRONT_MATTER_BYTES:
        raise ConfigurationError(
            f"the front matter has {len(block[1])} bytes; at most {MAX_FRONT_MATTER_BYTES} are allowed"
        )
    try:
        import yaml  # few servers have skills
    except ImportError:
        raise ConfigurationError.missing_extra("A skill", "skills") from None
    try:
        matter = yaml.load(block[1].decode(), Loader=_loader())  # a SafeLoader that accepts less
    except UnicodeDecodeError:
        raise ConfigurationError("the front matter is not UTF-8") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # such as a number with thousands of digits
        raise ConfigurationError(f"the front matter is not valid: {_explained(error)}") from None
    if not isinstance(matter, dict):
        raise ConfigurationError("the front matter is not a mapping: write name: … and description: …")
    return matter


def _explained(error: BaseException) -> str:
    mark = getattr(error, "problem_mark", None)
    place = "" if mark is None else f"line {mark.line + 2}: "  # after the line with ---
    return f"{place}{getattr(error, 'problem', None) or error}"


@cache
def _loader() -> Any:
    """Make the class that reads YAML: safe, without aliases and tags, and without values that parsers read differently.

    A parser of YAML 1.2 reads `yes` as text and `010` as ten, one of YAML 1.1 as true and as eight, and only some know
    dates. Clients compare the front matter with what they parse themselves, so such values must be in quotes.
    """
    import yaml

    class FrontMatterLoader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.depth += 1
            if self.check_event(yaml.AliasEvent):
                raise self.fault("aliases are not allowed; write the value again")
            if self.depth > MAX_FRONT_MATTER_DEPTH:
                raise self.fault(f"it is nested more than {MAX_FRONT_MATTER_DEPTH} levels deep")
            node: Any = super().compose_node(parent, index)
            self.depth -= 1
            for problem in _problems_of(node, yaml):
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
            return node

        def fault(self, problem: str) -> yaml.YAMLError:
            next_event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            return yaml.MarkedYAMLError(problem=problem, problem_mark=next_event.start_mark)

    return FrontMatterLoader


def _problems_of(node: Any, yaml: Any) -> Iterator[str]:
    if node.tag not in _TYPES | _GUESSED:
        yield f"the type {node.tag.removeprefix(_TAG)!r} is not allowed"
    if isinstance(node, yaml.MappingNode):
        times = Counter(str(key.value) for key, _ in node.value)
        yield from (f"{key!r} is there twice" for key, number in times.items() if number > 1)
    if isinstance(node, yaml.ScalarNode) and node.style is None and not _is_agreed(node.tag, node.value):
        yield f"write {node.value!r} in quotes, because parsers of YAML read it differently"


def _is_agreed(tag: str, value: str) -> bool:
    kind = tag.removeprefix(_TAG)
    if kind == "str":
        return _NUMBER.fullmatch(value) is None
    return kind in _AGREED and _AGREED[kind].fullmatch(value) is not None
