"""`python -m axolotl_cli` is `axolotl`."""

from axolotl_cli.app import main

if __name__ == "__main__":  # a worker process imports this module too
    main()
