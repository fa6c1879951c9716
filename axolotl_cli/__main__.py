"""The entry point of `axolotl`, and of `python -m axolotl_cli`."""

import sys
from contextlib import suppress
from io import TextIOWrapper


def main() -> None:
    """Run the command of this process."""
    from axolotl_cli.app import app
    from axolotl_cli.exit import run_and_exit

    _escape_unencodable_output()
    run_and_exit(app)


def _escape_unencodable_output() -> None:
    """Escape characters that the encoding of stdout does not have, as Python does on stderr."""
    if isinstance(sys.stdout, TextIOWrapper):
        with suppress(OSError):  # of a stream that only looks seekable, such as some sockets
            sys.stdout.reconfigure(errors="backslashreplace")


if __name__ == "__main__":  # tool processes import this module too
    main()
