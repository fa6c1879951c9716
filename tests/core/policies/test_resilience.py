"""Retries and circuit breakers."""

import socket
from typing import Any

import pytest

from axolotl_core import ConfigurationError, Context, ITool, NoArguments, ToolAnnotations, ToolError
from axolotl_core.errors import InputRequired, InvalidParams, Overloaded
from axolotl_core.policies.tool_rules import Breaker, Retry, retry_hazards
from axolotl_core.questions.question import needs_input


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 1},
        {"base_seconds": 0.0},
        {"max_seconds": float("inf")},
        {"on": (ToolError,)},
        {"on": (Overloaded,)},
        {"on": (BaseException,)},
        {"on": ("ValueError",)},
    ],
)
def test_a_retry_without_sense(wrong: dict[str, Any]) -> None:
    """Invalid values raise ConfigurationError, as does a ToolError among the exceptions."""
    with pytest.raises(ConfigurationError, match="Retry has"):
        Retry(**wrong)


@pytest.mark.parametrize(
    "wrong", [{"failures": 0}, {"share": 1.5}, {"share": -0.1}, {"window_seconds": 0}, {"open_seconds": float("nan")}]
)
def test_a_breaker_without_sense(wrong: dict[str, Any]) -> None:
    """Invalid values raise ConfigurationError."""
    with pytest.raises(ConfigurationError, match="Breaker has"):
        Breaker(**wrong)


@pytest.mark.parametrize(
    ("error", "covered"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (socket.gaierror(), True),
        (OSError(101, "Network is unreachable"), True),
        (FileNotFoundError(), False),
        (PermissionError(), False),
        (ValueError(), False),
        (ToolError("no"), False),
        (InvalidParams("no"), False),
        (InputRequired(), False),
        (ExceptionGroup("", [ConnectionError(), TimeoutError()]), True),
        (ExceptionGroup("", [ConnectionError(), ValueError()]), False),
    ],
)
def test_default_transient_errors(error: BaseException, covered: bool) -> None:
    """By default, only network errors are retried."""
    assert Retry().covers(error) is covered


def test_listed_errors_are_retried() -> None:
    """A tool lists its transient errors; a ToolError is never one of them."""
    assert Retry(on=(Exception,)).covers(ValueError())
    assert not Retry(on=(Exception,)).covers(ToolError("no"))
    assert not Retry(on=(OSError,)).covers(FileNotFoundError())
    assert Retry(on=(FileNotFoundError,)).covers(FileNotFoundError())
    assert not Retry(on=(OSError, FileNotFoundError)).covers(PermissionError())


def test_pauses_grow() -> None:
    """The maximum pause doubles, up to a limit."""
    rule = Retry(attempts=9, base_seconds=0.1, max_seconds=1.0)
    assert [rule.longest_pause(attempt) for attempt in range(1, 7)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert rule.longest_pause(10_000) == 1.0


class Fetch(ITool[NoArguments, None]):
    name = "fetch"
    retry = Retry()

    async def execute(self, arguments: NoArguments, context: Context) -> None:
        return None


@pytest.mark.parametrize(
    ("annotations", "hazardous"),
    [
        ({}, True),
        ({"destructive": True}, True),
        ({"destructive": True, "idempotent": True}, False),
        ({"destructive": False}, False),
        ({"read_only": True}, False),
    ],
)
def test_a_retry_that_may_destroy_something_twice(annotations: dict[str, Any], hazardous: bool) -> None:
    """A tool with a retry should be safe to repeat."""
    tool = Fetch()
    tool.annotations = ToolAnnotations(**annotations)
    assert any("may be destructive" in hazard for hazard in retry_hazards(tool, "loop")) is hazardous


def test_a_retry_that_never_happens() -> None:
    """A retry in a tool process must list Exception."""
    tool = Fetch()
    tool.annotations = ToolAnnotations(read_only=True)
    assert [*retry_hazards(tool, "loop")] == []
    assert "in a tool process" in next(retry_hazards(tool, "process"))
    tool.retry = Retry(on=(Exception,))
    assert [*retry_hazards(tool, "process")] == []


def test_tools_without_retry_have_no_hazards() -> None:
    """Tools without a retry have no hazards."""

    class Plain(Fetch):
        retry = None  # type: ignore[assignment]

    assert [*retry_hazards(Plain(), "process")] == []


def test_questions_alone() -> None:
    """A run that ended for missing answers did not fail, also with several questions of a task group."""
    assert needs_input(InputRequired())
    assert needs_input(BaseExceptionGroup("", [InputRequired(), BaseExceptionGroup("", [InputRequired()])]))
    assert not needs_input(BaseExceptionGroup("", [InputRequired(), ValueError()]))
    assert not needs_input(ValueError())
