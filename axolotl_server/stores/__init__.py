"""Stores for sessions, events, quotas and results: in memory, in SQLite and in Redis."""
