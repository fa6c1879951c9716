"""Caching of check results, compared with a model."""

from hypothesis import given
from hypothesis import strategies as st

from axolotl_core.health import HealthStatus
from axolotl_server.health import CheckResult, CheckRunner, HealthReport
from tests.support.servers.probed_server import Found

CACHE_SECONDS = 1.0
OUTCOMES = {
    "ok": None,
    "degraded": HealthStatus.degraded("slow"),
    "failed": HealthStatus.failed("gone"),
    "raised": OSError("gone"),
    "odd": "fine",
}
STATES = {"raised": "failed", "odd": "failed"}


@given(
    st.lists(
        st.one_of(
            st.floats(0, 2),
            st.sampled_from(sorted(OUTCOMES)),
            st.just(None),
        ),
        max_size=30,
    )
)
async def test_a_result_is_reused_for_its_lifetime(steps: list[float | str | None]) -> None:
    """A result is reused for its lifetime, and nothing is ever raised."""
    now, looks, truth = 0.0, 0, "ok"
    told: str | None = None
    found_at = float("-inf")
    check = Found("thing")
    lookout = CheckRunner(check, CACHE_SECONDS, lambda: now)
    for step in steps:
        if isinstance(step, float):
            now += step
        elif step is not None:
            truth = step
            check.found = OUTCOMES[truth]
        else:
            if told is None or now - found_at >= CACHE_SECONDS:
                looks, found_at, told = looks + 1, now, STATES.get(truth, truth)
            assert (await lookout.result()).state == told
            assert check.looks == looks


@given(st.lists(st.sampled_from(["ok", "degraded", "failed"])))
def test_the_worst_decides(states: list[str]) -> None:
    """The worst result determines the report, and only a failure makes a server unready."""
    report = HealthReport(tuple(CheckResult(f"f{number}", state) for number, state in enumerate(states)))  # type: ignore[arg-type]
    worst = next((state for state in ("failed", "degraded") if state in states), "ok")
    assert (report.state, report.status) == (worst, 503 if worst == "failed" else 200)
