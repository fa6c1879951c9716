"""The command `python -m tests.api`: records the public API."""

from tests.api.recording import PUBLIC, public_api

if __name__ == "__main__":
    PUBLIC.write_text("\n".join(public_api()) + "\n", encoding="utf-8")
