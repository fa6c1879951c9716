"""Systems to copy from; nothing imports them."""

__all__: list[str] = []
