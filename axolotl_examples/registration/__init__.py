"""Every way to register tools: singly, as a range, by a scan, and through the container."""

from axolotl_examples.registration.container import Container

__all__ = ["Container"]
