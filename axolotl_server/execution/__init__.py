"""Where the code of a tool runs."""
