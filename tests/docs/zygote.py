"""python -m tests.docs.zygote: run commands in forks of a process that has imported everything once.

Each line of the input is a command as JSON, with its directory and environment; each line of the output its code and
what it printed. The command line takes half a second to import, and the pages have many commands.
"""

import json
import os
import sys
from typing import Any

import axolotl_cli.app
import axolotl_cli.checking.trial_start
import axolotl_cli.commands.check
import axolotl_cli.runtime
import axolotl_cli.views.offer


def main() -> None:
    """Serve commands until the input ends."""
    for line in sys.stdin:
        code, output = _run(json.loads(line))
        print(json.dumps({"code": code, "output": output}), flush=True)


def _run(command: Any) -> tuple[int, str]:
    incoming, outgoing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(outgoing, 1)
        os.dup2(outgoing, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os._exit(_become(command))
    os.close(outgoing)
    with os.fdopen(incoming, encoding="utf-8") as stream:
        output = stream.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), output


def _become(command: Any) -> int:
    os.chdir(command["directory"])
    os.environ.clear()
    os.environ.update(command["environment"])
    sys.argv = command["words"]
    sys.modules["__main__"].__package__ = None  # else help texts would name this module instead of the command
    sys.path.insert(0, "")
    try:
        axolotl_cli.app.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    main()
