"""All settings, section by section."""
