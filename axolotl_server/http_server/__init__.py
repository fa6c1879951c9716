"""Several processes that serve one address."""
