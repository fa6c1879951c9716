"""Fixtures for all tests of the server."""

from tests.support.servers.observed_server import telemetry

__all__ = ["telemetry"]
