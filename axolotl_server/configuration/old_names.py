"""Names that settings had, and what to do about each; read only when a key is unknown."""

from typing import Final

_FIXED: Final = "its value is fixed now: remove it"
_BY_REVISION: Final = "set it in the code of the tool"

OLD_NAMES: Final = {
    "audit.kinds": "all kinds of features are recorded: remove it",
    "audit.max_rejections_per_minute": _FIXED,
    "audit.sqlite_path": "use audit.jsonl_path",
    "audit.timeout_seconds": _FIXED,
}
"""Old names with what to do about them; `*` stands for the name of a tool or tool set."""
