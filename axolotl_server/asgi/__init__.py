"""Building blocks for ASGI applications."""
