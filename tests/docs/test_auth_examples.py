"""The settings and scripts of the page about authentication."""

import subprocess
import sys
import tomllib

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_server.access.verifiers import make_gate
from axolotl_server.settings.loading import load_settings
from axolotl_server.settings.server import ServerSettings
from tests.docs.test_policy_examples import is_played
from tests.support.docs.pages import EXAMPLES, ROOT, blocks_in, read_page
from tests.support.docs.running import environment

DIRECTORY = EXAMPLES / "authenticated"


def settings_in(name: str) -> ServerSettings:
    """Load one of the files."""
    said = tomllib.loads((DIRECTORY / name).read_text(encoding="utf-8"))
    assert said.pop("target") == "ledger.py:Container"
    return load_settings(flags=said)


@pytest.mark.parametrize("name", ["issuer.toml", "keys.toml"])
async def test_settings(name: str) -> None:
    """A server accepts the settings."""
    settings = settings_in(name)
    _, made = make_gate(settings.auth, None)
    await made.close()


async def test_settings_with_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret comes from the environment, and a missing one is an error."""
    with pytest.raises(ConfigurationError, match="must be set together"):
        settings_in("introspection.toml")
    monkeypatch.setenv("AXOLOTL_AUTH__INTROSPECTION_CLIENT_SECRET", "s3cret")
    _, made = make_gate(settings_in("introspection.toml").auth, None)
    await made.close()


@pytest.mark.parametrize("script", ["trying", "own_verifier"])
def test_scripts(script: str) -> None:
    """The page shows the output of the scripts."""
    assert is_played(script)


def test_the_refusal_to_listen() -> None:
    """The page shows the error of a server that would accept unauthenticated requests from anywhere."""
    page = blocks_in("docs/operate/authentication.md", read_page("docs/operate/authentication.md"))
    [shown] = [block.text for block in page if block.language == "text"]
    line, error = shown.split("\n", 1)
    words = line.removeprefix("$ axolotl ").split(" ")
    done = subprocess.run(
        [sys.executable, "-m", "axolotl_cli", *words],
        cwd=EXAMPLES,
        env=environment({"PYTHONPATH": str(ROOT)}),
        capture_output=True,
        timeout=60,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", error)
