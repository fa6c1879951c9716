"""More tools for text. Nobody lists them: a scan finds every tool class and every `@tool` function in here."""
