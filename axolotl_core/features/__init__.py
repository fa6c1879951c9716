"""The common base of tools, prompts and resources."""
