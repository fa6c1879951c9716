"""Three good sources for a topic, from a signed registry."""

from axolotl_examples.three_good_sources.container import Container

__all__ = ["Container"]
