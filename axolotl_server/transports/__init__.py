"""Transports that carry a stream of messages: stdio and memory."""

__all__: list[str] = []
