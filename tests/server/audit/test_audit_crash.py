"""Killed servers: every answered call is in the log."""

import json
import os
import random
import signal
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from axolotl_server.audit.log_reading import lines_of, verify
from tests.support.commands import ForkedCommand, environment_with
from tests.support.peers.wire import call
from tests.support.servers.serving import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

_AT_ONCE = 32
TARGET = "tests.support.servers.audited_server:Container"


class Victim:
    """A stdio server with a constant number of running calls."""

    def __init__(self, directory: Path, durability: str, first: int) -> None:
        settings = {"AUDITED_DIRECTORY": str(directory), "AUDITED_DURABILITY": durability}
        self._process = ForkedCommand("serve", TARGET, environment=environment_with(**settings))
        self._stdin = os.fdopen(self._process.stdin, "wb", 0)
        self._stdout = os.fdopen(self._process.stdout, "rb")
        self._watchdog = threading.Timer(PATIENCE_SECONDS, self._kill)
        self._watchdog.start()
        self.next = first
        self.answered: set[int] = set()

    def kill_after(self, answers: int) -> None:
        """Keep it busy until it has sent a number of replies, and kill it; all sent replies count."""
        for _ in range(_AT_ONCE):
            self._ask()
        for _ in range(answers):
            self._hear(self._stdout.readline())
            self._ask()
        self._kill()
        for line in self._stdout:
            if line.endswith(b"\n"):
                self._hear(line)
        self._watchdog.cancel()
        self._process.kill()
        self._stdin.close()
        self._stdout.close()

    def _kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)

    def _ask(self) -> None:
        self._stdin.write(call("transfer", {"number": self.next}, id=self.next) + b"\n")
        self.next += 1

    def _hear(self, line: bytes) -> None:
        answer = json.loads(line)
        assert answer["result"]["structuredContent"] == answer["id"]
        self.answered.add(answer["id"])


def digest(number: int) -> str:
    canonical = b'{"number":%d}' % number
    return f"sha256:{sha256(canonical).hexdigest()}"


def records_of(log: Path) -> list[dict[str, Any]]:
    """Read all records, except an incomplete last one."""
    return [json.loads(line.text) for line in lines_of(log) if line.whole]


@pytest.mark.parametrize("durability", ["write", "fsync"])
def test_every_reply_has_a_record(durability: str, tmp_path: Path) -> None:
    """After repeated kills under load, there is an end record per reply and a start record per effect."""
    log, answered, number = tmp_path / "audit.jsonl", set[int](), 0
    chance = random.Random(durability)
    for _ in range(4):
        victim = Victim(tmp_path, durability, number)
        victim.kill_after(chance.randrange(50, 250))
        answered |= victim.answered
        number = victim.next
    effects = {int(line) for line in (tmp_path / "effects").read_text().split()}
    records = records_of(log)
    done = {record["digest"] for record in records if record.get("outcome") == "ok"}
    began = {record["digest"] for record in records if record["event"] == "start"}
    assert verify(log).fault is None
    assert len(answered) > 200
    assert {number for number in answered if digest(number) not in done} == set()
    assert {number for number in effects if digest(number) not in began} == set()


def test_calls_that_a_kill_cut_off_are_unknown(tmp_path: Path) -> None:
    """Calls that were running when the server was killed are reported by a verification and by the next start."""
    log = tmp_path / "audit.jsonl"
    Victim(tmp_path, "fsync", 0).kill_after(40)
    cut_off = {start.call_id for start in verify(log).unfinished}
    Victim(tmp_path, "fsync", 1000).kill_after(1)
    unknown = {record["call_id"] for record in records_of(log) if record.get("outcome") == "unknown"}
    assert unknown == cut_off
    ended = [record["call_id"] for record in records_of(log) if record["event"] == "end"]
    assert len(ended) == len(set(ended))
