"""Logging: one line per message, whatever it contains."""

import io
import logging
import re

import httpx2
import pytest

from axolotl_cli.logs import LineFormatter, set_log_level, start_logging
from axolotl_core.errors import ConfigurationError
from axolotl_server.settings.loading import load_settings


@pytest.fixture
def logged() -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter())
    logger = logging.Logger("sample")
    logger.addHandler(handler)
    return logger, stream


def test_format(logged: tuple[logging.Logger, io.StringIO]) -> None:
    """A line has the time, the level, the logger and the message."""
    logger, stream = logged
    logger.warning("it is %s", "late")
    assert re.fullmatch(r"\d\d:\d\d:\d\d WARNING sample: it is late\n", stream.getvalue())


def test_controls_are_escaped(logged: tuple[logging.Logger, io.StringIO]) -> None:
    """Line breaks and escape sequences are escaped."""
    logger, stream = logged
    logger.info("tool %s failed", "a\n12:00:00 INFO    root: forged\x1b[2J\x9b\u2028")
    [line] = stream.getvalue().splitlines()
    assert line.endswith(r"tool a\n12:00:00 INFO    root: forged\x1b[2J\x9b\u2028 failed")


def test_tracebacks_are_indented(logged: tuple[logging.Logger, io.StringIO]) -> None:
    """A traceback is indented, so that none of its lines looks like a message."""
    logger, stream = logged
    try:
        raise ValueError("first\n12:00:00 ERROR   root: forged\x1b[2J")
    except ValueError:
        logger.exception("failed")
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("sample: failed")
    assert rest[-1] == r"  12:00:00 ERROR   root: forged\x1b[2J"
    assert all(line.startswith("  ") for line in rest)


def test_levels(pristine: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Only messages of the level and above are logged, to stderr."""
    start_logging("warning")
    logging.getLogger("axolotl").info("one")
    set_log_level("info")
    logging.getLogger("axolotl").info("two")
    logging.getLogger("uvicorn.error").info("three")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.rpartition(" ")[2] for line in captured.err.splitlines()] == ["two"]


def test_urls_of_http_clients_are_not_logged(pristine: None, capsys: pytest.CaptureFixture[str]) -> None:
    """HTTP clients, which log URLs with their queries, log warnings only, unless the settings say otherwise."""
    for level in ("info", "debug"):
        start_logging(level, load_settings().log)
        with httpx2.Client(transport=httpx2.MockTransport(lambda request: httpx2.Response(200))) as client:
            client.get("https://api.example.com/?key=secret")
        logging.getLogger("httpx").info("GET https://api.example.com/?key=secret")
    assert "secret" not in capsys.readouterr().err
    start_logging("info", load_settings(flags={"log": {"levels": {"httpx": "info"}}}).log)
    logging.getLogger("httpx").info("GET https://api.example.com/?key=secret")
    assert "secret" in capsys.readouterr().err


def test_the_queue_of_tasks_logs_warnings_only(pristine: None) -> None:
    """The library that runs tasks does not log each of them that goes back into the queue."""
    start_logging("info", load_settings().log)
    assert not logging.getLogger("pgqueuer").isEnabledFor(logging.INFO)
    assert logging.getLogger("pgqueuer").isEnabledFor(logging.WARNING)


def test_levels_of_single_loggers(pristine: None) -> None:
    """`log.levels` sets the level of single loggers, such as those of libraries."""
    settings = load_settings(flags={"log": {"levels": {"acme.library": "WARNING"}}})
    start_logging("info", settings.log)
    assert not logging.getLogger("acme.library.part").isEnabledFor(logging.INFO)
    assert logging.getLogger("acme.other").isEnabledFor(logging.INFO)
    with pytest.raises(ConfigurationError, match=r"log\.levels\.httpx"):
        load_settings(flags={"log": {"levels": {"httpx": "loud"}}})
