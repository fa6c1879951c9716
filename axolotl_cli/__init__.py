"""The command line: serve what a container offers, and look at it before anyone else does."""

__all__: list[str] = []
