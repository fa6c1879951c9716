"""The command line: serve a container's tools, and look at them before anyone else does."""

__all__: list[str] = []
