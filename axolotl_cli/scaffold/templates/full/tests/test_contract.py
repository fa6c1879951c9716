"""The contract: axolotl.lock.json matches the code."""

import subprocess
import sys


def test_contract() -> None:
    """Changed on purpose? Read `axolotl contract diff`, then run `axolotl contract freeze` and commit the file."""
    command = [sys.executable, "-m", "axolotl_cli", "contract", "check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
