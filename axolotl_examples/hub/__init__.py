"""A hub: objects with several methods, mounted under a namespace each, called as `namespace.method`."""

from axolotl_examples.hub.container import Container

__all__ = ["Container"]
