"""Structured logs, metrics and traces, each loaded only if it is enabled."""
