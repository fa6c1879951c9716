"""Streamable HTTP as a raw ASGI application."""
