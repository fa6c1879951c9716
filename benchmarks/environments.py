"""An environment for each contender: what one installs costs no other a start or memory."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from benchmarks.errors import NotInstalled

_ROOT = Path(__file__).resolve().parent.parent
_FOLDER = _ROOT / ".cache" / "contenders"
_LOCK = _ROOT / "requirements" / "dev.lock"


@cache
def interpreter(name: str, *packages: str) -> str:
    """Return the Python of an environment that has these packages in the versions of the lock file.

    Raises NotInstalled if they cannot be installed.
    """
    folder = _FOLDER / name
    python = str(folder / "bin" / "python")
    installed = folder / "installed"
    wanted = "\n".join([sys.version, *packages, _LOCK.read_text(encoding="utf-8")])
    if not installed.is_file() or installed.read_text(encoding="utf-8") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        uv = [sys.executable, "-m", "uv"]
        try:
            subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
            install = [*uv, "pip", "install", "--quiet", "--python", python, "--constraint", str(_LOCK), *packages]
            subprocess.run(install, check=True, cwd=_ROOT)
        except subprocess.CalledProcessError as error:
            raise NotInstalled("not installed") from error
        compile_all = [python, "-m", "compileall", "-q", str(folder / "lib")]
        subprocess.run(compile_all, check=False, stdout=subprocess.DEVNULL)
        installed.write_text(wanted, encoding="utf-8")
    return python
