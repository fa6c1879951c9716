"""The settings of the server under test."""

from typing import Any, Final

SERVER_NAME: Final = "axolotl-conformance"
SETTINGS: Final[dict[str, Any]] = {
    "server": {"name": SERVER_NAME, "title": "Axolotl conformance"},
    "sessions": {"resumable": "replies"},  # one check needs a server that can stream ordinary replies
}
