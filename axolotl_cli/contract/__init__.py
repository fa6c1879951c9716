"""Contracts on the command line: where they come from, and reports about their changes."""
