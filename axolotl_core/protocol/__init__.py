"""The protocol as data: revisions, codes, messages. Nothing here waits for anything."""

__all__: list[str] = []
