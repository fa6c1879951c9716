"""Three good sources for a topic, from a registry that its curator signs."""

from axolotl_examples.three_good_sources.container import Container

__all__ = ["Container"]
