"""The contract of a server: what callers rely on, its lock, and changes between two locks."""
