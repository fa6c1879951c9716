"""Tools whose work is done once per key: shared runs and stored results."""
