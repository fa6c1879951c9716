"""Threads and processes that run tools."""
