"""Benchmarks of Axolotl against a bare ASGI application and other installed frameworks."""
