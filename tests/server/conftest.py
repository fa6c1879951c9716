"""Fixtures for all tests of the server."""

from tests.server.observing import telemetry

__all__ = ["telemetry"]
