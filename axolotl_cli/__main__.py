"""The entry point of `axolotl`, and of `python -m axolotl_cli`."""

import sys
from contextlib import suppress
from io import TextIOWrapper


def main() -> None:
    """Run the command of this process."""
    from axolotl_cli.app import app
    from axolotl_cli.exit import run_and_exit

    if isinstance(sys.stdout, TextIOWrapper):
        with suppress(OSError):  # of a stream that only looks seekable, such as some sockets
            # Escape characters that the encoding does not have, as Python does on stderr.
            sys.stdout.reconfigure(errors="backslashreplace")
    run_and_exit(app)


if __name__ == "__main__":  # tool processes import this module too
    main()
