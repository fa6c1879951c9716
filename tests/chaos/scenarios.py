"""The faults: what is broken under load, and what must be true meanwhile and afterwards."""

import asyncio
import os
import resource
import signal
import struct
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import httpx2

from benchmarks.soak.fleet import Fleet, fleet
from benchmarks.usage import resident_bytes
from tests.chaos.container import LEDGER
from tests.chaos.load import TOOLS, Load, Outcome
from tests.support.stores.redis_server import RedisServer

_TARGET: Final = "tests.chaos.container:Container"
_RECOVERY_SECONDS: Final = 10.0
"""How long a server may take until everything works again after a fault has ended."""
_CALLS: Final = 100
"""How many calls are made before, during and after a fault."""
_ALLOWED_GROWTH: Final = 64 << 20
_ONCE: Final = (*TOOLS, "once")
_HOUR: Final = 3600.0
_ROOT: Final = Path(__file__).resolve().parents[2]
_CLOCK_PATH: Final = f"{_ROOT / 'tests/chaos/shifted_clock'}{os.pathsep}{_ROOT}"


@dataclass
class Result:
    """What happened in one scenario."""

    name: str
    did: str = ""
    load: Outcome = field(default_factory=Outcome)
    recovery_seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        recovered = f"recovered in {self.recovery_seconds:.1f} s"
        return f"{self.name}: {self.did}; {self.load}, {recovered}, {len(self.faults)} faults"


class Place:
    """A server with its ledger, in the middle of a scenario."""

    def __init__(self, name: str, servers: Fleet, ledger: Path, seed: int) -> None:
        self.result = Result(name)
        self.servers = servers
        self.random = Random(seed)
        self._ledger = ledger
        self._seed = seed
        self._memory = resident_bytes(servers.pid)

    def load(self, *, sessions: bool = False, tools: Sequence[str] = TOOLS) -> Load:
        """Make calls until the block ends."""
        load = Load(self.servers.url, self._seed, sessions=sessions, tools=tools)
        self.result.load = load.outcome
        return load

    async def back_to_normal(self, load: Load) -> None:
        """Wait until calls are answered again, and note how long that took."""
        began = time.monotonic()
        await load.more(_CALLS, "answered")
        self.result.recovery_seconds = max(self.result.recovery_seconds, time.monotonic() - began)

    async def recover(self, *, sessions: bool = False, tools: Sequence[str] = TOOLS) -> None:
        """Wait until a number of calls of every kind work, one after the other."""
        began, good, trials = time.monotonic(), 0, 0
        while good < 3 and time.monotonic() - began < _RECOVERY_SECONDS:
            trials += 1
            trial = Load(self.servers.url, self._seed, sessions=sessions, tools=tools, prefix=f"trial-{trials}")
            with suppress(TimeoutError):
                async with trial:
                    await trial.more(len(tools) * 4)
            good = good + 1 if trial.outcome.made == len(trial.outcome.answered) else 0
        if good < 3 or self.result.recovery_seconds > _RECOVERY_SECONDS:
            self.result.faults.append(f"not everything works within {_RECOVERY_SECONDS:g} s: {trial.outcome}")

    def judge(self, *, may_be_closed: bool = False) -> None:
        """Look for lost, repeated and wrong replies, a dead server and memory that has grown."""
        self.result.faults += self.result.load.faults(self._ledger, may_be_closed=may_be_closed)
        grown = resident_bytes(self.servers.pid) - self._memory
        if grown > _ALLOWED_GROWTH:
            self.result.faults.append(f"the memory has grown by {grown >> 20} MiB")
        self.servers.signal(signal.SIGTERM)
        code = self.servers.end()
        if code != 0:
            self.result.faults.append(f"the server ended with {code}")


@contextmanager
def _place(name: str, seed: int, workers: int, environment: Mapping[str, str]) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="axolotl-chaos-") as directory:
        ledger = Path(directory, "ledger")
        ledger.touch()
        with fleet(_TARGET, workers, {LEDGER: str(ledger), **environment}) as servers:
            yield Place(name, servers, ledger, seed)


async def _pause(pid: int, seconds: float) -> None:
    """Stop a process for a time, as an overcommitted machine does."""
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)  # sleeps: the process must be stopped for a certain time
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


async def kill_workers(seed: int, rounds: int) -> Result:
    """Kill workers, with sessions in Redis."""
    with RedisServer() as redis, _place("workers killed", seed, 2, _with(redis)) as place:
        killed: list[int] = []
        async with place.load(sessions=True) as load:
            for _ in range(rounds * 2):
                await load.more(_CALLS)
                if serving := place.servers.serving():
                    killed.append(place.random.choice(serving))
                    os.kill(killed[-1], signal.SIGKILL)
                    await place.back_to_normal(load)
        place.result.did = f"killed {len(killed)} workers"
        await asyncio.to_thread(place.servers.wait_until_full, killed)
        await place.recover(sessions=True)
        place.judge()
    return place.result


async def pause_processes(seed: int, rounds: int) -> Result:
    """Stop workers and their supervisor for a moment, and a worker for so long that it is replaced."""
    environment = {"AXOLOTL_HTTP__WORKER_TIMEOUT_SECONDS": "2"}
    with _place("processes paused", seed, 2, environment) as place:
        async with place.load(sessions=True) as load:
            for _ in range(rounds):
                for pid in (place.random.choice(place.servers.serving()), place.servers.pid):
                    await load.more(_CALLS)
                    await _pause(pid, 0.5)
                    await place.back_to_normal(load)
            stuck = place.random.choice(place.servers.serving())
            os.kill(stuck, signal.SIGSTOP)
            await asyncio.to_thread(place.servers.wait_until_full, [stuck])
            await place.back_to_normal(load)
        place.result.did = (
            f"paused a worker and the supervisor {rounds} times, and stopped a worker until it was replaced"
        )
        await place.recover(sessions=True)
        place.judge()
    return place.result


async def lose_redis(seed: int, rounds: int) -> Result:
    """Let Redis hang, kill it and start it again."""
    durable = ("--appendonly", "yes", "--appendfsync", "always")
    with RedisServer(*durable) as redis, _place("Redis lost", seed, 2, _with(redis)) as place:
        async with place.load(sessions=True, tools=_ONCE) as load:
            for _ in range(rounds):
                await load.more(_CALLS)
                redis.hang()
                await load.more(20, "refusals")
                redis.go_on()
                await place.back_to_normal(load)
                redis.kill()
                await load.more(20, "refusals")
                redis.start()
                await place.back_to_normal(load)
        place.result.did = f"let Redis hang and killed it {rounds} times"
        await place.recover(sessions=True, tools=_ONCE)
        place.judge()
    return place.result


async def fill_disk(seed: int, rounds: int) -> Result:
    """Let the audit log not grow any more."""
    with tempfile.TemporaryDirectory(prefix="axolotl-chaos-") as directory:
        log = Path(directory, "audit.jsonl")
        with _place("disk full", seed, 1, {"AXOLOTL_AUDIT__JSONL_PATH": str(log)}) as place:
            async with place.load() as load:
                for _ in range(rounds):
                    await load.more(_CALLS)
                    with _limited(place.servers.pid, resource.RLIMIT_FSIZE, os.stat(log).st_size + 10_000):
                        await load.more(20, "refusals")
                        assert await _status(place, "/readyz") == 503
                    await place.back_to_normal(load)
            place.result.did = f"filled the disk of the audit log {rounds} times"
            await place.recover()
            place.judge()
    return place.result


async def exhaust_descriptors(seed: int, rounds: int) -> Result:
    """Leave the server no descriptors for new connections."""
    with _place("descriptors exhausted", seed, 1, {}) as place:
        async with place.load() as load:
            for _ in range(rounds):
                await load.more(_CALLS)
                used = {int(name) for name in os.listdir(f"/proc/{place.servers.pid}/fd")}
                free = next(number for number in range(len(used) + 1) if number not in used)
                with _limited(place.servers.pid, resource.RLIMIT_NOFILE, free):
                    waiting = await _open_connections(place, 50)
                    await load.more(20, "refusals")  # tools cannot open their files
                for writer in waiting:
                    writer.transport.abort()
                await place.back_to_normal(load)
        place.result.did = f"used up all descriptors {rounds} times"
        await place.recover()
        place.judge(may_be_closed=True)
    return place.result


async def shift_clock(seed: int, rounds: int) -> Result:
    """Set the clock of the machine back and forth by an hour."""
    with tempfile.NamedTemporaryFile(prefix="axolotl-chaos-") as clock:
        clock.write(struct.pack("d", 0.0))
        clock.flush()
        environment = {"CHAOS_CLOCK": clock.name, "PYTHONPATH": _CLOCK_PATH}
        rule = {f"AXOLOTL_QUOTAS__RULES__ALL__{name}": value for name, value in _GENEROUS.items()}
        with _place("clock shifted", seed, 2, {**environment, **rule}) as place:
            async with place.load(sessions=True, tools=_ONCE) as load:
                for _ in range(rounds):
                    for hours in (1, -1, 24, 0):
                        clock.seek(0)
                        clock.write(struct.pack("d", hours * _HOUR))
                        clock.flush()
                        await load.more(_CALLS)
            place.result.did = f"shifted the clock {rounds * 4} times"
            if load.outcome.refused:
                place.result.faults.append(f"calls were refused: {set(load.outcome.refused.values())}")
            await place.recover(sessions=True, tools=_ONCE)
            place.judge()
    return place.result


_GENEROUS: Final = {"RATE_PER_SECOND": "100000", "BURST": "100000"}
SCENARIOS: Final[Mapping[str, Callable[[int, int], Coroutine[None, None, Result]]]] = {
    "workers": kill_workers,
    "processes": pause_processes,
    "redis": lose_redis,
    "disk": fill_disk,
    "descriptors": exhaust_descriptors,
    "clock": shift_clock,
}


def _with(redis: RedisServer) -> dict[str, str]:
    return {"AXOLOTL_REDIS__URL": redis.url}


@contextmanager
def _limited(pid: int, kind: int, limit: int) -> Iterator[None]:
    """Lower a limit of a running process for a while."""
    soft, hard = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (limit, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, kind, (soft, hard))


async def _status(place: Place, path: str) -> int:
    async with httpx2.AsyncClient(verify=False) as client:
        return (await client.get(place.servers.url.rpartition("/")[0] + path)).status_code


async def _open_connections(place: Place, number: int) -> list[asyncio.StreamWriter]:
    url = httpx2.URL(place.servers.url)
    opened = []
    for _ in range(number):
        with suppress(OSError):
            opened.append((await asyncio.open_connection(url.host, url.port))[1])
    return opened
