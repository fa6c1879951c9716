"""A keyword search over directory trees: confined, cancellable, and nearly as fast as grep."""

from axolotl_examples.keyword_search.container import Container

__all__ = ["Container"]
