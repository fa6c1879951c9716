"""A hub of objects, each mounted under a namespace and called as `namespace.method`."""

from axolotl_examples.hub.container import Container

__all__ = ["Container"]
