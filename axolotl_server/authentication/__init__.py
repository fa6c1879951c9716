"""Authentication over HTTP: verification of bearer tokens, challenges, and metadata for clients."""
