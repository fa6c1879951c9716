"""Example systems to copy from. The framework never imports them."""

__all__: list[str] = []
