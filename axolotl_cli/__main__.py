"""The entry point of `axolotl`, and of `python -m axolotl_cli`."""

import gc
from typing import Final

_OBJECTS_OF_A_START: Final = 500_000
"""More objects than imports create. Nearly all of them live until the end of the process: to search them for garbage
takes time and finds little."""


def main() -> None:
    """Run the command of this process, without garbage collection during the imports."""
    gc.set_threshold(_OBJECTS_OF_A_START)

    from axolotl_cli.app import main as run_command

    run_command()


if __name__ == "__main__":  # tool processes import this module too
    main()
