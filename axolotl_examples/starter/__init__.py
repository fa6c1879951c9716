"""The starter tools, which are served when no target is given."""

from axolotl_examples.starter.container import Container

__all__ = ["Container"]
