"""Settings from files, environment variables and flags, with the origin of every value."""
