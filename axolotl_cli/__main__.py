"""The entry point of `python -m axolotl_cli`, which is the same as `axolotl`."""

from axolotl_cli.app import main

if __name__ == "__main__":  # tool processes import this module too
    main()
