"""Tools, prompts, resources and completions: catalogues and methods."""
