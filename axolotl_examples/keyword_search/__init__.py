"""A keyword search over directory trees: confined, cancellable and quick."""

from axolotl_examples.keyword_search.container import Container

__all__ = ["Container"]
