"""The command line `python -m axolotl_examples.three_good_sources`."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from axolotl_examples.three_good_sources.commands import main
from tests.examples.three_good_sources.desk import Desk, small_registry
from tests.support.commands import ROOT


@dataclass(frozen=True)
class Ended:
    """The result of a command."""

    code: int
    stdout: str
    stderr: str


def run(*words: str, directory: Path = ROOT) -> Ended:
    """Run a command in a separate process."""
    command = [sys.executable, "-m", "axolotl_examples.three_good_sources", *words]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=30)
    return Ended(done.returncode, done.stdout, done.stderr)


class CommandLine:
    """Runs commands in this process, which is faster."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: object) -> Ended:
        self._monkeypatch.setattr(sys, "argv", ["three_good_sources", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, int)
        return Ended(end.value.code, *self._capsys.readouterr())


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


def test_shipped_registry() -> None:
    """The shipped registry has a valid signature."""
    ended = run("verify")
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout.startswith("registry.json: valid signature by John Turner\nPublic Key: ")


def test_keygen_sign_and_verify(cli: CommandLine, tmp_path: Path) -> None:
    """A curator creates a key pair and signs and verifies a registry; a later change is detected."""
    made = run("keygen", directory=tmp_path)
    pubkey = (tmp_path / "curator.key.pub").read_text(encoding="ascii").strip()
    assert (made.code, made.stdout.count(pubkey)) == (0, 1)
    registry = tmp_path / "registry.json"
    registry.write_text(json.dumps(small_registry(pubkey)), encoding="utf-8")

    signed = run("sign", "--key", "curator.key", "registry.json", directory=tmp_path)
    assert signed == Ended(0, f"registry.json.sig: written, for {pubkey}\n", "")
    verified = cli("verify", registry, "--key", tmp_path / "curator.key.pub")
    assert (verified.code, verified.stderr) == (0, "")
    assert verified.stdout.startswith(f"registry.json: valid signature by Ada\nPublic Key: {pubkey}\nDigest: sha256:")

    registry.write_bytes(registry.read_bytes().replace(b"Ada", b"Eve"))
    refused = run("verify", "registry.json", "--key", "curator.key.pub", directory=tmp_path)
    assert (refused.code, refused.stdout) == (1, "")
    assert refused.stderr == (
        "Error: registry.json: the signature is invalid: the file or its signature was changed, "
        f"or it was not signed by {pubkey}\n"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="permissions")
def test_private_key_is_private(cli: CommandLine, tmp_path: Path) -> None:
    """Only its owner can read a private key."""
    assert cli("keygen", "--key", tmp_path / "my.key").code == 0
    assert (tmp_path / "my.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("taken", ["my.key", "my.key.pub"])
def test_keys_are_not_overwritten(cli: CommandLine, tmp_path: Path, taken: str) -> None:
    """An existing key is not overwritten, and no partial key pair is left over."""
    (tmp_path / taken).write_text("precious", encoding="ascii")
    ended = cli("keygen", "--key", tmp_path / "my.key")
    assert ended == Ended(2, "", "Error: my.key or my.key.pub already exists; keys are never overwritten\n")
    assert [file.name for file in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_text(encoding="ascii") == "precious"


def test_nowhere_to_write(cli: CommandLine, tmp_path: Path) -> None:
    """A missing directory is reported."""
    ended = cli("keygen", "--key", tmp_path / "absent" / "my.key")
    assert ended == Ended(2, "", "Error: my.key: cannot be written: No such file or directory\n")


@pytest.mark.parametrize("name", ["registry", "signature", "public_key"])
def test_tampering(cli: CommandLine, desk: Desk, name: str) -> None:
    """Any change is reported with the name of the file and a nonzero exit code."""
    path: Path = getattr(desk, name)
    text = path.read_text(encoding="ascii")
    path.write_text(text.replace(text[2], "y" if text[2] != "y" else "b", 1), encoding="ascii")
    ended = cli("verify", desk.registry, "--key", desk.public_key)
    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr.startswith("Error: registry.json")


def test_foreign_registry(cli: CommandLine, desk: Desk) -> None:
    """By default, a registry that another curator signed is rejected."""
    assert cli("verify", desk.registry).code == 1


def test_settings_are_used(cli: CommandLine, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` uses the settings of the server."""
    monkeypatch.setenv("THREE_GOOD_SOURCES_REGISTRY_FILE", str(desk.registry))
    monkeypatch.setenv("THREE_GOOD_SOURCES_PUBLIC_KEY_FILE", str(desk.public_key))
    ended = cli("verify")
    assert ended.code == 0
    assert "valid signature by Ada" in ended.stdout


def test_unsigned(cli: CommandLine, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a trusted key, the output says that the registry is not verified."""
    desk.write(lambda document: document["curator"].update(pubkey=None))
    monkeypatch.setenv("THREE_GOOD_SOURCES_PUBLIC_KEY_FILE", "")
    ended = cli("verify", desk.registry)
    assert ended.code == 0
    assert ended.stdout.startswith("registry.json: not signed yet\nDigest: ")


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        pytest.param(b"no key", "my.key: must be an Ed25519 private key in PEM, without a password", id="no-key"),
        pytest.param(None, "my.key: cannot be read: No such file or directory", id="absent"),
    ],
)
def test_wrong_private_key(cli: CommandLine, desk: Desk, content: bytes | None, finding: str) -> None:
    """An invalid private key signs nothing, and the old signature is kept."""
    key = desk.private_key.with_name("my.key")
    if content is not None:
        key.write_bytes(content)
    before = desk.signature.read_bytes()
    assert cli("sign", "--key", key, desk.registry) == Ended(2, "", f"Error: {finding}\n")
    assert desk.signature.read_bytes() == before


def test_broken_registry_is_not_signed(cli: CommandLine, desk: Desk) -> None:
    """An invalid registry is not signed, and all problems are reported."""
    desk.write(lambda document: document.update(version="one", colour="red"))
    desk.signature.unlink()
    ended = cli("sign", "--key", desk.private_key, desk.registry)
    assert ended.code == 2
    assert ended.stderr == (
        "Error: registry.json: version: must be three numbers, such as 1.0.0\nError: registry.json: colour: unknown\n"
    )
    assert not desk.signature.exists()


def test_no_command(cli: CommandLine) -> None:
    """Without a command, the help is shown."""
    ended = cli()
    assert all(name in ended.stdout for name in ("verify", "sign", "keygen"))
