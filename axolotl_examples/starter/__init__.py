"""A first set of tools, served where no other is named."""

from axolotl_examples.starter.container import Container

__all__ = ["Container"]
