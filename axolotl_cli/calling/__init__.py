"""One request to a server, made from the command line."""
