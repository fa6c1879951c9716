"""Tools registered one by one, in a range, by a scan and through the container; every call leaves a line in a log."""

from axolotl_examples.registration.container import Container

__all__ = ["Container"]
