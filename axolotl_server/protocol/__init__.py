"""The protocol: revisions, messages, the connections that they arrive on, and methods that name no feature."""
