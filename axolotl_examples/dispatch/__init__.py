"""A server that starts without tools and gets them while it runs."""

from axolotl_examples.dispatch.container import Container
from axolotl_examples.dispatch.workshop import Workshop

__all__ = ["Container", "Workshop"]
