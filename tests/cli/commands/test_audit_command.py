"""`axolotl audit`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from axolotl_cli.app import app
from tests.cli.conftest import Answer
from tests.support.audited_calls import record, store_at, write_log

KEY = "a key that nobody guesses"


def run(*words: str | Path) -> Answer:
    result = CliRunner().invoke(app, ["audit", *map(str, words)], catch_exceptions=False)
    return Answer(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a log, without the developer's key in the environment."""
    monkeypatch.delenv("AXOLOTL_AUDIT__KEY", raising=False)
    monkeypatch.delenv("AXOLOTL_AUDIT__KEY_FILE", raising=False)
    return tmp_path / "audit.jsonl"


def change(log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'"echo"', b'"evil"', 1))


def test_verify(log: Path) -> None:
    """An unchanged log is verified, and its last record is printed for the next time."""
    last = json.loads(write_log(log, 3)[-1])
    answer = run("verify", log)
    assert answer.code == 0
    assert answer.stdout == f"{log}: 5 records verified\nThe last record is 5:{last['hash']}\n"


def test_verify_finds_a_fault(log: Path) -> None:
    """The first fault is reported with its place, and the exit code is 1."""
    write_log(log, 3)
    change(log)
    answer = run("verify", log)
    assert answer.code == 1
    assert answer.stdout.startswith("changed    audit.jsonl, line 2: record 2 was changed")


def test_verify_for_programs(log: Path) -> None:
    """The same report is available as JSON."""
    store = store_at(log)
    store.open()
    store.append([record(1, event="start", kind="tool", subject="alice")])
    good = run("verify", log, "--json")
    store.append([record(1)])
    store.close()
    report = json.loads(good.stdout)
    assert (good.code, report["ok"], report["records"], report["fault"]) == (0, True, 2, None)
    assert [start["call_id"] for start in report["unfinished"]] == [f"{1:016x}"]
    change(log)
    bad = run("verify", log, "--json")
    assert (bad.code, json.loads(bad.stdout)["fault"]["kind"]) == (1, "changed")


def test_verify_warns(log: Path) -> None:
    """Lost records, crashes and calls without an end are warnings."""
    write_log(log, 1)
    with log.open("ab") as opened:
        opened.write(b'{"seq"')
    store = store_at(log)
    store.open()
    store.append([record(event="gap", lost=3), record(7, event="start", kind="tool", name="transfer")])
    answer = run("verify", log)
    store.close()
    assert answer.code == 0
    assert "1 incomplete record cut off after a crash" in answer.stdout
    assert "3 records could not be written" in answer.stdout
    assert f"tool transfer started at 2026-11-16T05:00:00.000000Z and has no end (call {7:016x})" in answer.stdout


def test_verify_with_a_key(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key comes from a file or the environment; without it, a keyed log cannot be verified."""
    write_log(log, 1, KEY)
    key_file = log.with_name("key")
    key_file.write_text(f"{KEY}\n")
    assert "--key-file" in run("verify", log).stderr
    assert run("verify", log, "--key-file", key_file).code == 0
    monkeypatch.setenv("AXOLOTL_AUDIT__KEY_FILE", str(key_file))
    assert run("verify", log).code == 0
    monkeypatch.delenv("AXOLOTL_AUDIT__KEY_FILE")
    monkeypatch.setenv("AXOLOTL_AUDIT__KEY", KEY)
    assert run("verify", log).code == 0
    assert "The key file: there is no such file" in run("verify", log, "--key-file", log.with_name("absent")).stderr
    monkeypatch.setenv("AXOLOTL_AUDIT__KEY", "another key, as long")
    assert run("verify", log).code == 1


def test_verify_with_an_anchor(log: Path) -> None:
    """A record that an earlier run printed must exist, so that a truncated log is found."""
    lines = write_log(log, 3)
    _, _, head = run("verify", log).stdout.strip().rpartition(" ")
    assert run("verify", log, "--expect", head).code == 0
    log.write_bytes(b"".join(lines[:-1]))
    without = run("verify", log)
    assert (without.code, "there is no closing record" in without.stdout) == (0, True)
    answer = run("verify", log, "--expect", head)
    assert (answer.code, "removed    the end" in answer.stdout) == (1, True)
    assert run("verify", log, "--expect", "5").code == 2


@pytest.mark.parametrize("place", [".", "audit-*", "audit-{worker}.jsonl"])
def test_verify_many(log: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """A directory or a pattern stands for all its logs, and one fault is enough to fail."""
    monkeypatch.chdir(log.parent)
    for number in (1, 2):
        write_log(Path(f"audit-{number}.jsonl"), 3, max_bytes=400)
    Path("notes.txt").write_text("not a log", encoding="utf-8")
    Path("audit-1.jsonl.torn-5-1").write_bytes(Path("audit-1.jsonl").read_bytes())
    answer = run("verify", place)
    assert answer.code == 0
    assert answer.stdout.endswith("\n2 logs found\n")
    assert [line.partition(":")[0] for line in answer.stdout.splitlines() if "verified" in line] == [
        "audit-1.jsonl",
        "audit-2.jsonl",
    ]
    change(Path("audit-2.jsonl"))
    bad = json.loads(run("verify", place, "--json").stdout)
    assert (bad["ok"], bad["found"], [one["ok"] for one in bad["logs"]]) == (False, 2, [True, False])
    assert run("verify", place).code == 1
    assert run("verify", place, "--expect", f"1:{'0' * 64}").code == 2


@pytest.mark.parametrize("place", ["audit-{worker}.jsonl", "audit-*.jsonl"])
def test_verify_a_pattern_that_is_a_file(log: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """A file whose name is the pattern does not stand for the logs that match it."""
    monkeypatch.chdir(log.parent)
    for name in (place, "audit-1.jsonl", "audit-task-1.jsonl"):
        write_log(Path(name), 2)
    change(Path("audit-1.jsonl"))
    answer = run("verify", place)
    assert (answer.code, "3 logs found" in answer.stdout) == (1, True)
    assert "changed    audit-1.jsonl, line 2" in answer.stdout


@pytest.mark.parametrize(
    "place", [".", "audit-*", "../{here}/audit-{{worker}}.jsonl", "{there}", "{there}/audit-?.jsonl"]
)
def test_verify_a_log_that_is_missing(log: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """The log of each worker that the settings name must exist; logs elsewhere are not expected."""
    settings = '[audit]\njsonl_path = "logs/audit-{worker}.jsonl"\n[http]\nworkers = 3\n'
    (log.parent / "axolotl.toml").write_text(settings, encoding="utf-8")
    for folder in ("logs", "old"):
        for number in (1, 3):
            (log.parent / folder).mkdir(exist_ok=True)
            write_log(log.parent / folder / f"audit-{number}.jsonl", 2)
    place = place.format(here="logs", there=log.parent / "logs")

    def verify(where: str | Path, *words: str) -> Answer:
        monkeypatch.chdir(log.parent / "logs")  # the command goes to the directory of the settings
        return run("verify", where, *words)

    answer = verify(place)
    assert answer.code == 1
    assert "removed    audit-2.jsonl: the settings name this log, and it does not exist" in answer.stdout
    assert answer.stdout.endswith("\n2 logs found\n")
    shown = json.loads(verify(place, "--json").stdout)
    assert [one["ok"] for one in shown["logs"]] == [True, True, False]
    assert verify(log.parent / "old").code == 0
    assert verify("audit-1.jsonl").code == 0


@pytest.mark.parametrize("place", ["audit-1.jsonl", ".", "audit-{worker}.jsonl"])
def test_verify_without_the_current_file(log: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """A log of which only full files are left is not complete."""
    monkeypatch.chdir(log.parent)
    write_log(Path("audit-1.jsonl"), 3, max_bytes=400)
    assert run("verify", place).code == 0
    Path("audit-1.jsonl").unlink()
    answer = run("verify", place)
    assert (answer.code, "removed    the end: the current file is missing" in answer.stdout) == (1, True)


def test_verify_a_log_in_use(log: Path) -> None:
    """The log of a running process needs no closing record; that of a killed one is shown with a warning."""
    write_log(log, 1)
    store = store_at(log)
    store.open()
    assert "closing record" not in run("verify", log).stdout
    store._lock.release()  # as the system does when the process is killed
    answer = run("verify", log)
    assert (answer.code, "there is no closing record" in answer.stdout) == (0, True)


def test_verify_nothing(log: Path) -> None:
    """A directory without a log is an error, because nothing was verified."""
    answer = run("verify", log.parent)
    assert answer.code == 2
    assert "there is no audit log" in answer.stderr


def test_verify_with_the_configured_key(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the settings file is used, also with a profile."""
    monkeypatch.chdir(log.parent)
    write_log(log, 1, KEY)
    settings = f'[audit]\nkey = "{KEY}"\n[profile.other.audit]\nkey = "another key, as long"\n'
    Path("axolotl.toml").write_text(settings, encoding="utf-8")
    assert run("verify", log.name).code == 0
    assert run("verify", log.name, "--profile", "other").code == 1


def test_a_log_that_is_not_there(log: Path) -> None:
    """A log that cannot be read is a different error than a changed one."""
    answer = run("verify", log)
    assert (answer.code, "cannot be read" in answer.stderr) == (2, True)
