"""The settings of the search, read from environment variables."""

from pathlib import Path

from pydantic import DirectoryPath, Field, NonNegativeFloat, PositiveInt
from pydantic_settings import BaseSettings, SettingsConfigDict


class SearchSettings(BaseSettings):
    """Directories and limits of the search. Environment variables: for example `KEYWORD_SEARCH_MAX_DEPTH=8`."""

    model_config = SettingsConfigDict(frozen=True, env_prefix="KEYWORD_SEARCH_")

    allowed_roots: tuple[DirectoryPath, ...] = Field(default_factory=lambda: (Path.cwd(),), min_length=1)
    """The directories that may be searched recursively. A JSON list in the environment variable."""
    max_file_bytes: PositiveInt = 1024 * 1024
    """Larger files are skipped."""
    max_line_characters: PositiveInt = 300
    """Longer lines are cut around the keyword."""
    max_report_bytes: PositiveInt = 2 * 1024 * 1024
    """The matches of a report stop at this size, which must fit into `max_result_bytes` of the server."""
    max_depth: int = Field(64, ge=1, le=200)
    """Directories nested more deeply are not entered, because each level keeps a descriptor open."""
    progress_seconds: NonNegativeFloat = 0.25
    """The interval of progress notifications."""
