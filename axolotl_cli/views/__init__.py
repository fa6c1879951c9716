"""Views of a server: its features, schemas, settings and authorization decisions."""
