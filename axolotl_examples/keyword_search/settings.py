"""What an operator says about the search."""

from pathlib import Path

from pydantic import DirectoryPath, Field, NonNegativeFloat, PositiveInt
from pydantic_settings import BaseSettings, SettingsConfigDict


class SearchSettings(BaseSettings):
    """Where the search may look and how much it may do; read from the environment, as `KEYWORD_SEARCH_MAX_DEPTH=8`."""

    model_config = SettingsConfigDict(frozen=True, env_prefix="KEYWORD_SEARCH_")

    allowed_roots: tuple[DirectoryPath, ...] = Field(default_factory=lambda: (Path.cwd(),), min_length=1)
    """The directories it may read, with all below; in the environment a JSON list."""
    max_file_bytes: PositiveInt = 1024 * 1024
    """Larger files are skipped."""
    max_line_characters: PositiveInt = 300
    """Longer lines are cut around the keyword."""
    max_depth: int = Field(64, ge=1, le=200)
    """Directories that are nested deeper are not entered: each level holds a descriptor open."""
    progress_seconds: NonNegativeFloat = 0.25
    """How often a caller hears how far the search is."""
