"""Channels over pipes: to any stream of lines, and to a child process."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from axolotl_server.client.channel import InvalidReply, Message, SharedChannel, read_messages

_EXIT_SECONDS: Final = 5.0
_KILL_SECONDS: Final = 2.0
_INHERITED: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""The variables that a server gets, as from the clients of the SDKs; others may be secrets, such as keys of clouds."""
_ENDED: Final = "The server process closed its output before it answered"


class LineChannel(SharedChannel):
    """Lines of JSON to and from a stream, such as a pipe."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_message_bytes: int) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer
        self._max_message_bytes = max_message_bytes
        self._end: ConnectionError | None = None
        """Why nothing is read any more."""
        self._reading = asyncio.create_task(self._read())

    async def send(self, message: Message) -> None:
        if self._writer.transport.get_write_buffer_size() > self._max_message_bytes:
            raise ConnectionError(f"The server does not read its input: over {self._max_message_bytes} bytes wait")
        await super().send(message)

    def write(self, data: bytes) -> None:
        if self._end is not None or self._writer.is_closing():
            raise self._end or ConnectionError(_ENDED)
        self._writer.write(data + b"\n")

    async def close(self) -> None:
        """Close the input of the server, and read no more when it has ended."""
        self._writer.close()
        await self.wait_ended()
        self._reading.cancel()
        await asyncio.wait([self._reading])
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    async def wait_ended(self) -> None:
        """Wait for the end of the server."""
        await asyncio.wait([self._reading])

    async def _read(self) -> None:
        error: ConnectionError = ConnectionError(_ENDED)
        try:
            while line := await self._reader.readline():
                if not line.isspace():
                    for message in read_messages(line):
                        self.receive(message)
                await asyncio.sleep(0)  # many buffered lines must not keep the others from running
        except ValueError:
            error = InvalidReply(f"The server sent a message of more than {self._max_message_bytes} bytes")
        except InvalidReply as invalid:
            error = invalid
        self._end = error
        self.lose(error)


class ProcessChannel(LineChannel):
    """Lines of JSON to and from a child process, whose log goes to the standard error of this process."""

    def __init__(self, process: asyncio.subprocess.Process, max_message_bytes: int) -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        super().__init__(process.stdout, process.stdin, max_message_bytes)
        self._process = process

    async def wait_ended(self) -> None:
        """Wait for the end of the process; after a time, end it by SIGTERM, then by SIGKILL."""
        for seconds, end in ((_EXIT_SECONDS, self._process.terminate), (_KILL_SECONDS, self._process.kill)):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), seconds)
                break
            with suppress(ProcessLookupError):
                end()
        await self._process.wait()


async def open_process_channel(
    command: Sequence[str], environment: Mapping[str, str] | None, directory: str | Path | None, max_message_bytes: int
) -> ProcessChannel:
    """Start a process with few variables of this one, and `environment`; raises OSError if that is not possible."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**inherited, **(environment or {})},
        cwd=directory,
        limit=max_message_bytes,
    )
    return ProcessChannel(process, max_message_bytes)
