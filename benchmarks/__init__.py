"""Measure Axolotl against a bare ASGI application and the installed peers."""
