"""Where the code of a tool runs."""

__all__: list[str] = []
