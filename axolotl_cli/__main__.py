"""`python -m axolotl_cli` is `axolotl`."""

from axolotl_cli.app import main

main()
