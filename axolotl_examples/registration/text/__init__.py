"""Text tools that a scan finds: every tool class and every `@tool` function in this package."""
