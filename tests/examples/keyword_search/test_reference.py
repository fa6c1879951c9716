"""Comparison with a naive search in random small trees."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from axolotl_examples.keyword_search.models import KeywordQuery
from tests.examples.keyword_search.searching import plant, search_directly

LETTERS = "aAbBéÉ_- "
CONTENT = st.lists(
    st.sampled_from([*(letter.encode() for letter in LETTERS), b"\n", b"\n", b"\r\n", b"\xff", b"\xc3", b"ab"]),
    max_size=30,
).map(b"".join)
TREES = st.dictionaries(st.sampled_from(["a", "b.txt", "c/a", "c/d/e", "c.txt", "d/é", "d-e", "d"]), CONTENT)
QUERIES = st.builds(
    KeywordQuery,
    keyword=st.text(LETTERS, min_size=1, max_size=3),
    root_paths=st.just(["."]),
    case_sensitive=st.booleans(),
    whole_word=st.booleans(),
    context_lines=st.integers(0, 2),
    max_results=st.integers(1, 6),
)


def occurs(query: KeywordQuery, line: str) -> bool:
    """Compare the keyword at every position of the line."""
    length = len(query.keyword)
    return any(
        same(query, line[start : start + length])
        and not (query.whole_word and (in_word(line[start - 1 : start]) or in_word(line[start + length :][:1])))
        for start in range(len(line) - length + 1)
    )


def same(query: KeywordQuery, text: str) -> bool:
    return text == query.keyword if query.case_sensitive else text.lower() == query.keyword.lower()


def in_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def reference(root: Path, query: KeywordQuery) -> list[tuple[str, int, str, list[str], list[str]]]:
    """Search naively."""
    found = []
    files = [file.relative_to(root) for file in root.rglob("*") if file.is_file()]
    for file in sorted(files, key=lambda path: path.parts):
        text = (root / file).read_bytes().decode("utf-8", "replace")
        lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
        for index, line in enumerate(lines):
            if occurs(query, line):
                before = lines[max(0, index - query.context_lines) : index]
                after = lines[index + 1 : index + 1 + query.context_lines]
                found.append((str(file), index + 1, line, before, after))
    return found


@settings(max_examples=150)
@given(tree=TREES, query=QUERIES)
def test_reference(tree: dict[str, bytes], query: KeywordQuery) -> None:
    """Lines, numbers, context, order and limit match those of the naive search."""
    with TemporaryDirectory() as directory:
        root = Path(directory)
        taken = {path: content for path, content in tree.items() if not any(f"{path}/" in other for other in tree)}
        plant(root, taken)
        report = search_directly(root, **query.model_dump())
        expected = reference(root, query)
        assert report.files_searched == len(taken) or report.truncated
    assert [
        (file.file, match.line_number, match.text, match.before, match.after)
        for file in report.files
        for match in file.matches
    ] == expected[: query.max_results]
    assert report.truncated is (len(expected) > query.max_results)
    assert report.match_count == sum(file.match_count for file in report.files) == min(len(expected), query.max_results)
