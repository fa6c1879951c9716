"""A server that starts without tools and gets them while it runs."""

from axolotl_examples.dispatch.container import Container, Workshop

__all__ = ["Container", "Workshop"]
