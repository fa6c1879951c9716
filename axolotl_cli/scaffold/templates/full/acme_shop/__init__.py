"""The tools of a shop."""
