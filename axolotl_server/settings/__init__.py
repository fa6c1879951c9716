"""All settings, section by section, and how they are read from files, variables and the container."""
