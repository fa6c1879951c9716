"""`python -m axolotl_examples.three_good_sources`: verify a registry, or sign one."""

from axolotl_examples.three_good_sources.commands import main

main()
