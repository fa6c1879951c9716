"""Runs `axolotl`, and prints what its start has built: `python -m tests.support.start_objects serve`."""

import gc
import json
import sys
from contextlib import suppress

from axolotl_cli.__main__ import main


def _objects() -> dict[str, object]:
    gc.unfreeze()
    classes = [one for one in gc.get_objects() if issubclass(type(one), type)]
    own = [one for one in classes if str(one.__module__).startswith(("axolotl_core", "axolotl_server", "axolotl_cli"))]
    return {
        "dataclasses": [one.__name__ for one in own if "__dataclass_fields__" in vars(one)],
        "validated": [
            one.__name__
            for one in own
            if one.__module__.startswith("axolotl_server.settings") and vars(one).get("__pydantic_complete__")
        ],
    }


if __name__ == "__main__":
    with suppress(SystemExit):
        main()
    print(json.dumps(_objects()), file=sys.stderr)
