"""Tools whose work is done once per key: runs and stored results."""
