"""The shipped registry."""

from pathlib import Path

import axolotl_examples.three_good_sources as package
from axolotl_examples.three_good_sources import Container
from axolotl_examples.three_good_sources.registry import Registry

DIRECTORY = Path(package.__file__).parent
REGISTRY: Registry = Container().sources()


def test_ten_categories() -> None:
    """There are ten categories with three sources each, and no source is repeated."""
    assert len(REGISTRY.categories) == 10
    urls = [source.url for category in REGISTRY.categories for source in category.sources]
    assert len(urls) == len(set(urls)) == 30


def test_categories_are_in_order() -> None:
    """Categories are sorted by slug, so that changes are easy to review."""
    assert REGISTRY.categories == REGISTRY.by_slug


def test_curator() -> None:
    """The curator's key is the one that the package trusts."""
    assert REGISTRY.curator.name == "John Turner"
    assert REGISTRY.curator.pubkey == (DIRECTORY / "curator.pub").read_text(encoding="ascii").strip()


def test_no_private_key() -> None:
    """The package contains only the public key."""
    texts = [file.read_bytes() for file in DIRECTORY.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    assert texts
    assert not any(b"PRIVATE " + b"KEY" in text for text in texts)
