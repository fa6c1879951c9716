"""The program of an open-loop client: requests arrive at a fixed rate, however slowly the server replies.

It runs in its own process, so that its work does not delay the server that is measured, or the measurement.
"""

import asyncio
import json
import math
import sys
import time
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Final

import uvloop

from benchmarks import wire
from benchmarks.errors import BenchmarkError
from benchmarks.http_client import Connection, Response
from benchmarks.usage import cpu_seconds

GIVE_UP_SECONDS: Final = 1.0
"""How long a request may take. Later replies are worth nothing to the client, which closes the connection."""
RECOVERY_SECONDS: Final = 20.0
_CLOSED_LOOP_CONNECTIONS: Final = 8
_SERIAL_CALLS: Final = 20
_NORMAL: Final = 2.0
"""How many times as long as before the load a call may take afterwards to count as normal."""


@dataclass
class Outcome:
    """What became of the requests."""

    sent: int = 0
    served: int = 0
    refused: list[float] = field(default_factory=list)
    """The seconds until each refusal."""
    lost: int = 0
    """Requests without a reply in time."""
    seconds: float = 0.0
    """From the first request to the last reply that arrived in time."""
    cpu: float = 0.0
    """The CPU seconds of the server, from the calls before the load to those after it."""
    successes: int = 0
    """The calls that were served in that time."""
    recovery: float = 0.0
    """The seconds from the last request to the first call that took no longer than before the load."""

    @property
    def refusal_p99(self) -> float:
        """Return the time within which 99 % of the refusals arrived."""
        return sorted(self.refused)[math.ceil(len(self.refused) * 0.99) - 1]


class OpenLoop:
    """Calls to one server over as many connections as are needed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._request = wire.stateless_calls(port, 1, 1)[0]
        self._idle: list[Connection] = []
        self.successes = 0

    async def closed_loop(self, seconds: float) -> Outcome:
        """Send the next request on each connection when a reply has arrived."""
        outcome, begin = Outcome(), time.perf_counter()

        async def caller() -> None:
            while time.perf_counter() - begin < seconds:
                await self._call(outcome, time.perf_counter())

        await asyncio.gather(*(caller() for _ in range(_CLOSED_LOOP_CONNECTIONS)))
        outcome.seconds = time.perf_counter() - begin
        return outcome

    async def load(self, rate: float, seconds: float) -> Outcome:
        """Send requests at a fixed rate, and then calls one after the other until one is as fast as before."""
        usual = median([await self._serial() for _ in range(_SERIAL_CALLS)])
        outcome, begin, running = Outcome(), time.perf_counter(), []
        for number in range(max(1, round(rate * seconds))):
            due = begin + number / rate
            if (early := due - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            running.append(asyncio.ensure_future(self._call(outcome, due)))
        ended = time.perf_counter()
        outcome.recovery = await self._recovered(usual * _NORMAL) - ended
        served = [moment for moment in await asyncio.gather(*running) if moment is not None]
        outcome.seconds = max(seconds, max(served, default=begin) - begin)
        return outcome

    async def _recovered(self, limit: float) -> float:
        """Return the time at which a call took no longer than the limit, or at which there was no more patience."""
        end = time.perf_counter() + RECOVERY_SECONDS
        while time.perf_counter() < end:
            if await self._serial() <= limit:
                break
        return time.perf_counter()

    async def _serial(self) -> float:
        """Return the seconds of a call; infinity if it was not served."""
        begin, outcome = time.perf_counter(), Outcome()
        await self._call(outcome, begin)
        return time.perf_counter() - begin if outcome.served else math.inf

    async def _call(self, outcome: Outcome, due: float) -> float | None:
        """Make one call that was due at a time, and return when its result arrived."""
        outcome.sent += 1
        try:
            response = await asyncio.wait_for(self._exchange(), max(0.0, due + GIVE_UP_SECONDS - time.perf_counter()))
        except (BenchmarkError, OSError, TimeoutError):
            outcome.lost += 1
            return None
        now = time.perf_counter()
        if wire.ANSWER in response.body:
            outcome.served += 1
            self.successes += 1
            return now
        outcome.refused.append(now - due)
        return None

    async def _exchange(self) -> Response:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                break
        else:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(Connection, "127.0.0.1", self._port)
        try:
            response = await connection.send_all([self._request], b"")
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return response


async def _run(pid: int, port: int, rate: float, seconds: float) -> Outcome:
    """Measure the closed loop if the rate is 0, otherwise the open loop."""
    client = OpenLoop(port)
    await client.closed_loop(0.1)
    begin, before = cpu_seconds(pid), client.successes
    outcome = await (client.load(rate, seconds) if rate else client.closed_loop(seconds))
    outcome.cpu, outcome.successes = cpu_seconds(pid) - begin, client.successes - before
    return outcome


if __name__ == "__main__":
    [server, address], [arrivals, duration] = map(int, sys.argv[1:3]), map(float, sys.argv[3:5])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(asdict(runner.run(_run(server, address, arrivals, duration)))))
