"""The modules that the fork server of the tests imports."""

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

# Freeze all objects: garbage collection would copy their pages into every fork.
gc.freeze()
