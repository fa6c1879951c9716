"""The in-process client, for tests and the command line."""
