"""Start and stop of a server, and protection from code that hangs, blocks or fails."""
