"""What the server under test says of itself."""

from typing import Any, Final

SERVER_NAME: Final = "axolotl-conformance"
SETTINGS: Final[dict[str, Any]] = {
    "server": {"name": SERVER_NAME, "title": "Axolotl conformance"},
    "sessions": {"stream_replies": True},  # one check asks whether ordinary replies can be streams
}
