"""What probes hear: whether a server lives, has started and may be sent calls."""

__all__: list[str] = []
