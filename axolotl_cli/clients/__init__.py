"""Configuration files of MCP clients, and manifests for registries."""
