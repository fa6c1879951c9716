"""Stores of what must outlive a connection."""
