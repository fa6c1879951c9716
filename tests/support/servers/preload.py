"""What a process that is forked into servers has imported beforehand."""

import gc
import importlib

for name in (
    "axolotl_cli.app",
    "axolotl_cli.serving.stdio",
    "docstring_parser",
    "jsonschema_rs",
    "pytest",
    "tests.transcripts.tools",
    "uvloop",
):
    importlib.import_module(name)

# What is there now stays: looking through it again and again would copy its pages into every fork.
gc.freeze()
