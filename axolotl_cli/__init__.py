"""The command line of Axolotl: serve a container, and inspect, check and call it."""

__all__: list[str] = []
