"""Threads and processes that run tools, and what watches, limits and stops them."""
