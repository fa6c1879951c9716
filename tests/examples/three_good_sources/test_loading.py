"""Validation of registries."""

import re
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import ConfigurationError
from axolotl_examples.three_good_sources import Container
from axolotl_examples.three_good_sources.loading import UntrustedRegistry, load_registry, parse_registry
from axolotl_server import connect
from tests.examples.three_good_sources.desk import Desk, Edit, category, source

ABSENT = object()
HTTPS = "must be an https URL with a public host, without port and credentials"


def put(place: str, value: Any) -> Edit:
    """Set or delete the value at a path such as `categories[1].slug`."""
    *way, last = (int(step) if step.isdigit() else step for step in re.findall(r"\w+", place))

    def edit(document: Any) -> None:
        for step in way:
            document = document[step]
        if value is ABSENT:
            del document[last]
        else:
            document[last] = value

    return edit


BAD = [
    ("colour", "red", "unknown"),
    ("curator.mail", "ada@example.org", "unknown"),
    ("categories[1].colour", "red", "unknown"),
    ("categories[1].sources[2].stars", 5, "unknown"),
    ("updated", ABSENT, "required, but missing"),
    ("curator.pubkey", ABSENT, "required, but missing"),
    ("categories[0].sources[1].why", ABSENT, "required, but missing"),
    ("version", "one", "must be three numbers, such as 1.0.0"),
    ("version", "1.0.0-rc.1", "must be three numbers, such as 1.0.0"),
    ("updated", "yesterday", "Input should be a valid date"),
    ("curator.name", 5, "Input should be a valid string"),
    ("curator.name", "Ada\nLovelace", "must be one line of text, without leading or trailing spaces"),
    ("curator.pubkey", "mine", "must be a PKARR public key: 52 characters of z-base-32"),
    ("endorsements", None, "Input should be a valid array"),
    ("categories", [], "Tuple should have at least 1 item"),
    ("categories[1].slug", "tea-brewing", "tea-brewing is already the slug of categories[0]"),
    ("categories[0].slug", "Tea Brewing", "must be lower-case words joined by hyphens"),
    ("categories[0].slug", "tea-", "must be lower-case words joined by hyphens"),
    ("categories[0].name", "", "must be one line of text"),
    ("categories[0].name", " Tea", "must be one line of text"),
    ("categories[0].description", "See [this](https://example.org)", "must be plain text, without Markdown"),
    ("categories[0].sources[0].why", "**Best**", "must be plain text, without Markdown"),
    ("categories[0].query_patterns", [], "Tuple should have at least 1 item"),
    ("categories[0].query_patterns[0]", "hot drinks", "contains none of the keywords and hints of the category"),
    ("categories[0].keywords", [], "Tuple should have at least 1 item"),
    ("categories[0].keywords[0]", "Green tea", "must be lower-case words"),
    ("categories[0].keywords[0]", "green Tea", "must be lower-case words"),
    ("categories[0].keywords[0]", "the", "the is a stop word, which is never matched"),
    ("categories[1].sources", [], "must be exactly three, but there are 0"),
    ("categories[1].sources", [source(1, "milk"), source(2, "milk")], "must be exactly three, but there are 2"),
    (
        "categories[0].sources",
        [source(rank, "milk") for rank in (1, 2, 3, 4)],
        "must be exactly three, but there are 4",
    ),
    ("categories[0].sources[1].rank", 1, "must be 2, because sources are listed in the order of their ranks"),
    ("categories[0].sources[2].rank", 0, "must be 3, because"),
    ("categories[0].sources[0].rank", "1", "Input should be a valid integer"),
    ("categories[0].sources[0].rank", True, "Input should be a valid integer"),
    ("categories[0].sources[1].url", "https://example.org/tea/1", "already occurs in this category"),
    ("categories[1].sources[1].url", "http://example.org/", HTTPS),
    ("categories[0].sources[0].type", "rumour", "Input should be 'book', 'course'"),
]

BAD_URLS = [
    "",
    "example.org/tea",
    "http://example.org/tea",
    "ftp://example.org/tea",
    "javascript:alert(1)",
    "https://",
    "https:///tea",
    "https://localhost/tea",
    "https://user:secret@example.org/tea",
    "https://example.org:8443/tea",
    "https://example.org:port/tea",
    "https://[::1/tea",
    "https://example.org/a b",
    "https://example.org/\n",
    "https://exämple.org/",
]

BAD_FILES = [
    pytest.param(b"", "registry.json: line 1, column 1: Expecting value", id="empty"),
    pytest.param(b'{\n  "version": }', "registry.json: line 2, column 14: Expecting value", id="syntax"),
    pytest.param(b"[]", "registry.json: the document: Input should be an object", id="array"),
    pytest.param(b'"\xff"', "registry.json: must be UTF-8", id="encoding"),
    pytest.param(
        b'{"version": "1", "version": "2"}', "registry.json: 'version' occurs twice in one object", id="twice"
    ),
    pytest.param(b"[" * 100_000, "registry.json: is nested too deeply", id="depth"),
]


@pytest.mark.parametrize(("place", "value", "problem"), BAD)
def test_bad_content(desk: Desk, place: str, value: Any, problem: str) -> None:
    """A violated rule is reported with its path."""
    desk.write(put(place, value))
    with pytest.raises(ConfigurationError) as refused:
        parse_registry("registry.json", desk.registry.read_bytes())
    expected = f"registry.json: {place}: {problem}"
    assert any(finding.startswith(expected) for finding in refused.value.findings), refused.value


@pytest.mark.parametrize("url", BAD_URLS)
def test_bad_urls(desk: Desk, url: str) -> None:
    """Only https URLs with a public host are valid."""
    desk.write(put("categories[1].sources[1].url", url))
    with pytest.raises(ConfigurationError) as refused:
        parse_registry("registry.json", desk.registry.read_bytes())
    assert refused.value.findings == (f"registry.json: categories[1].sources[1].url: {HTTPS}",)


@pytest.mark.parametrize(("content", "finding"), BAD_FILES)
def test_bad_files(content: bytes, finding: str) -> None:
    """A file that is not a registry is reported in one line."""
    with pytest.raises(ConfigurationError) as refused:
        parse_registry("registry.json", content)
    [found] = refused.value.findings
    assert found.startswith(finding)


def test_all_findings_at_once(desk: Desk) -> None:
    """All problems are reported at once."""

    def edit(document: dict[str, Any]) -> None:
        document["categories"] += [category("tea-brewing", "tea"), category("milk-frothing", "milk")]
        document["categories"][3]["sources"].pop()

    desk.write(edit)
    with pytest.raises(ConfigurationError) as refused:
        parse_registry("registry.json", desk.registry.read_bytes())
    assert refused.value.findings == (
        "registry.json: categories[2].slug: tea-brewing is already the slug of categories[0]",
        "registry.json: categories[3].sources: must be exactly three, but there are 2",
    )


@pytest.mark.parametrize("missing", ["registry", "public_key"])
def test_missing_files(desk: Desk, missing: str) -> None:
    """A missing file is named."""
    path: Path = getattr(desk, missing)
    path.unlink()
    with pytest.raises(ConfigurationError, match=rf"^{path.name}: cannot be read: No such file or directory$"):
        desk.load()


def test_good_registry(desk: Desk) -> None:
    """A valid, signed registry is loaded with its digest and signature."""
    file = desk.load()
    assert [category.slug for category in file.registry.categories] == ["tea-brewing", "coffee-roasting"]
    assert [category.slug for category in file.registry.by_slug] == ["coffee-roasting", "tea-brewing"]
    assert file.seal is not None
    assert str(file.seal.public_key) == desk.pubkey


def test_unsigned_registry_must_not_name_a_key(desk: Desk) -> None:
    """Without a trusted key, a registry must not name one."""
    with pytest.raises(UntrustedRegistry, match=r"curator\.pubkey"):
        load_registry(desk.configuration.model_copy(update={"public_key_file": None}))


async def test_server_does_not_start(desk: Desk) -> None:
    """The server does not start, and reports the problems."""
    desk.write(put("categories[0].sources[1].url", "http://example.org/"))
    unsigned = desk.configuration.model_copy(update={"public_key_file": None})
    container: Any = Container()
    container.configuration.override(providers.Object(unsigned))
    with pytest.raises(ConfigurationError, match=r"^registry\.json: categories\[0\]\.sources\[1\]\.url: must be"):
        async with connect(container):
            pass
