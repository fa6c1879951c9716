"""The console: a page for developers to see what a server offers and does, and to call it."""
