"""Building a server around a user's container: roles, layers, methods."""
