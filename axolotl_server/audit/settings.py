"""What an operator can say about the records of calls."""

from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field, PositiveFloat, PositiveInt, SecretStr

from axolotl_core.feature import Kind
from axolotl_server.settings_section import Section

__all__ = ["AuditSettings", "Durability", "OnFailure"]

Durability: TypeAlias = Literal["none", "write", "fsync"]
OnFailure: TypeAlias = Literal["open", "closed"]


class AuditSettings(Section):
    """The records of calls; there are none unless a sink is named here or in the container."""

    jsonl_path: Path | None = None
    """The file for records as JSON lines."""
    sqlite_path: Path | None = None
    """The SQLite database for records."""
    stderr: bool = False
    """Whether records are written to the standard error stream, without a hash chain."""
    durability: Durability = "write"
    """What has happened to a record when its caller is answered: nothing yet, the system has it, or the disk has it."""
    on_failure: OnFailure = "closed"
    """Whether calls go on (`open`) or are refused (`closed`) when records cannot be kept."""
    arguments: Literal["digest", "redacted"] = "digest"
    """Whether records show arguments, save for sensitive ones, or only a digest of them."""
    kinds: tuple[Kind, ...] = ("tool", "prompt", "resource", "extension")
    """Whose calls are recorded."""
    key: SecretStr | None = Field(None, min_length=16)
    """A secret of at least 16 characters without which nobody can write the hash chain anew."""
    max_bytes: PositiveInt = 64 * 1024 * 1024
    """How large the file may grow before the next one begins."""
    max_files: PositiveInt | None = None
    """How many files are kept besides the current one; all unless it is set."""
    timeout_seconds: PositiveFloat = 5.0
    """How long a sink may take to keep a record before it counts as failed."""

    @property
    def enabled(self) -> bool:
        """Whether the settings alone name a sink."""
        return self.stderr or self.jsonl_path is not None or self.sqlite_path is not None
