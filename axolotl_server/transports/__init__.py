"""Transports that carry a stream of messages: stdio and memory."""
