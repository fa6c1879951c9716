"""A curator's key pair and a small registry."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from axolotl_examples.three_good_sources.configuration import Configuration
from axolotl_examples.three_good_sources.loading import RegistryFile, load_registry, signature_file
from axolotl_examples.three_good_sources.signing import make_key_pair, public_key_file, sign_registry

Edit: TypeAlias = Callable[[dict[str, Any]], object]
"""Changes a registry before it is written."""


class Desk:
    """The files of a curator in a directory."""

    def __init__(self, directory: Path) -> None:
        self.registry = directory / "registry.json"
        self.signature = signature_file(self.registry)
        self.private_key = directory / "curator.key"
        self.public_key = public_key_file(self.private_key)
        self.pubkey = str(make_key_pair(self.private_key))
        self.write()
        self.sign()

    @property
    def configuration(self) -> Configuration:
        """A configuration with this registry and this key."""
        return Configuration(registry_file=self.registry, public_key_file=self.public_key)

    def write(self, edit: Edit = lambda document: None) -> None:
        """Write the registry, changed or not, and keep the old signature."""
        document = small_registry(self.pubkey)
        edit(document)
        self.registry.write_text(json.dumps(document), encoding="utf-8")

    def sign(self) -> None:
        """Sign the registry."""
        sign_registry(self.registry, self.private_key)

    def load(self) -> RegistryFile:
        """Load the registry like a server does."""
        return load_registry(self.configuration)


def small_registry(pubkey: str | None) -> dict[str, Any]:
    """Create a valid registry."""
    return {
        "version": "0.1.0",
        "updated": "2026-01-02",
        "curator": {"name": "Ada", "pubkey": pubkey},
        "endorsements": [],
        "categories": [category("tea-brewing", "tea"), category("coffee-roasting", "coffee")],
    }


def category(slug: str, keyword: str) -> dict[str, Any]:
    """Create a category with three sources."""
    return {
        "slug": slug,
        "name": slug.title(),
        "description": f"All about {keyword}.",
        "query_patterns": [f"make good {keyword}"],
        "keywords": [keyword],
        "sources": [source(rank, keyword) for rank in (1, 2, 3)],
    }


def source(rank: int, keyword: str) -> dict[str, Any]:
    """Create a source."""
    return {
        "rank": rank,
        "name": f"{keyword.title()} {rank}",
        "url": f"https://example.org/{keyword}/{rank}",
        "type": "guide",
        "why": f"Number {rank}.",
    }
