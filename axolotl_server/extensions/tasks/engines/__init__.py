"""Engines that store tasks and run their calls: in memory, in SQLite and in Postgres."""
