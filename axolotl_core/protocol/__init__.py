"""The protocol as data: revisions, error codes, messages."""
