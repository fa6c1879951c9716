"""Configuration files of MCP clients, and the manifest for the registry."""
