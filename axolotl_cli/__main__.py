"""The entry point of `axolotl`, and of `python -m axolotl_cli`."""

import gc
import os
import sys
from contextlib import suppress
from functools import partial
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from axolotl_cli.serving.serve_arguments import ServeArguments

_OBJECTS_OF_A_START: Final = 500_000
"""More objects than imports create. Nearly all of them live until the end of the process: to search them for garbage
takes time and finds little."""


def main() -> None:
    """Run the command of this process, without garbage collection during the imports."""
    gc.set_threshold(_OBJECTS_OF_A_START)

    from axolotl_cli.exit import run_and_exit

    _escape_unencodable_output()
    arguments = _simple_arguments()
    run_and_exit(_run_command if arguments is None else partial(_serve, arguments))


def _escape_unencodable_output() -> None:
    """Escape characters that the encoding of stdout does not have, as Python does on stderr."""
    if isinstance(sys.stdout, TextIOWrapper):
        with suppress(OSError):  # of a stream that only looks seekable, such as some sockets
            sys.stdout.reconfigure(errors="backslashreplace")


def _simple_arguments() -> "ServeArguments | None":
    if sys.argv[1:2] != ["serve"] or sys.platform == "win32":  # where Typer expands patterns
        return None
    from axolotl_cli.serving.serve_arguments import read_simple

    return read_simple(sys.argv[2:], os.environ)


def _run_command(failure: BaseException | None = None) -> None:
    from axolotl_cli.app import app

    app(obj=failure)


def _serve(arguments: "ServeArguments") -> None:
    """Serve without Typer, which only reports a failure, as one of the command."""
    try:
        arguments.serve()
    except (Exception, KeyboardInterrupt) as error:
        failure = error
    else:
        return
    _run_command(failure)


if __name__ == "__main__":  # tool processes import this module too
    main()
