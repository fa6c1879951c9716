"""The protocol as data: revisions, codes, messages. Nothing here waits for anything."""
