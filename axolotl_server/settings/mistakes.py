"""Descriptions of wrong settings: the place, the problem, and the nearest valid key or what replaces an old one."""

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pydantic_core import ErrorDetails

from axolotl_core.features.attributes import similar
from axolotl_server.settings.origins import FlatValues, Keys, Source, dotted, inside, origin_in, prefixes
from axolotl_server.settings.settings_shape import SETTINGS, Shape

_MOST_ORIGINS: Final = 4
_UNKNOWN: Final = "extra_forbidden"
_NAME: Final = "[key]"
"""What pydantic adds to the path of a table if its name is wrong."""
_NO_NUMBER: Final = frozenset({"float_parsing", "float_type", "int_parsing", "int_type"})
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) *(ms|s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?|d|days?)")
_SECONDS_OF: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_NO_TABLE: Final = frozenset({"dict_type", "mapping_type", "model_attributes_type", "model_type"})

_OLD_NAMES: Final = {
    "all kinds of features are recorded, remove it": "audit.kinds",
    "its value is fixed now, remove it": """
        audit.max_rejections_per_minute audit.timeout_seconds auth.clock_skew_seconds auth.fetch_max_bytes
        auth.jwks_cache_seconds auth.token_cache_size authorization.timeout_seconds console.recent_calls
        health.cache_seconds http.max_head_bytes http.max_headers http.watch_after_seconds
        http.write_timeout_seconds idempotency.claim_seconds idempotency.max_record_bytes
        idempotency.store_timeout_seconds limits.cancel_grace_seconds limits.close_seconds
        limits.loop_stall_seconds limits.max_json_values limits.max_loop_lag_seconds limits.threads_per_tool
        protocol.log_level protocol.log_messages_per_second protocol.page_size protocol.progress_per_second
        protocol.state_ttl_seconds quotas.max_entries quotas.store_retry_seconds
        quotas.store_timeout_seconds redis.connections sessions.max_events sessions.retry_seconds
        sessions.store_timeout_seconds stdio.drain_seconds stdio.end_with_parent
        subscriptions.maximum_per_request subscriptions.maximum_resources tasks.hold_seconds tasks.max_bytes
        tasks.max_runs tasks.poll_interval_seconds telemetry.flush_seconds
    """,
    "use audit.jsonl_path": "audit.sqlite_path",
    "use auth.jwks": "auth.jwks_file auth.jwks_url",
    "without rules and default nothing is restricted; use authorization.default": "authorization.mode",
    "it is /livez now, remove it": "health.live_path",
    "it is /health now, remove it": "health.path",
    "it is /readyz now, remove it": "health.ready_path",
    "it is /startupz now, remove it": "health.startup_path",
    "use http.request_timeout_seconds": "http.body_timeout_seconds http.header_timeout_seconds",
    "use http.max_buffer_bytes": "http.max_buffered_body_bytes http.max_running_body_bytes http.max_unread_bytes",
    "use limits.share_per_caller": """
        http.max_connections_per_address limits.max_inflight_per_principal sessions.maximum_per_principal
        subscriptions.maximum_per_principal tasks.maximum_per_principal
    """,
    "use idempotency.max_bytes": "idempotency.max_entries",
    "it is /metrics now, remove it": "metrics.path",
    "the contract is not published any more, remove it": "server.publish_contract",
    "use sessions.max_total_event_bytes": "sessions.max_event_bytes",
    'use sessions.resumable = "replies"': "sessions.stream_replies",
    "set it in the code of the tool": """
        tools.*.coerce_arguments tools.*.execution tools.*.max_result_bytes tools.*.max_timeout_seconds
        tools.*.pool tools.*.queue_timeout_seconds toolsets.*.max_result_bytes
        toolsets.*.max_timeout_seconds toolsets.*.pool toolsets.*.queue_limit
        toolsets.*.queue_timeout_seconds
    """,
    "the case of tool names is always ignored, remove it": "tools.name_matching",
}
"""Names that settings had, by what to do instead; `*` stands for the name of a tool or tool set."""

ADVICE: Final = {name: advice for advice, names in _OLD_NAMES.items() for name in names.split()}


def describe(
    mistakes: Iterable[ErrorDetails], combined: FlatValues, reported: Collection[Keys] = (), shape: Shape = SETTINGS
) -> list[str]:
    """Write a finding for every mistake, except in settings that are already reported."""
    findings = []
    for mistake in mistakes:
        keys = mistake["loc"]
        if keys[-1:] == (_NAME,) and mistake["type"] != _UNKNOWN:
            keys = keys[:-1]
        if keys not in reported:
            place = f"Setting {dotted(keys)}" if keys else "The settings"
            origins = _origins(keys, combined)
            findings.append(f"{place}{_problem(keys, mistake, shape)}" + (f" ({origins})" if origins else ""))
    return findings


def _problem(keys: Keys, mistake: ErrorDetails, shape: Shape) -> str:
    kind = mistake["type"]
    if kind == _UNKNOWN:
        is_file = shape.at(*keys).secret is not None
        return ": must be the path of a file" if is_file else " is unknown" + _hint(keys, shape)
    if kind in _NO_TABLE:
        return ": must be a table" + _hint(keys, shape)
    if kind in _NO_NUMBER and keys and str(keys[-1]).endswith("_seconds"):
        return f": {_how_to_write_seconds(mistake['input'])}"
    if kind == "path_type":  # its message has the name of a class, which differs between versions of Python
        return ": must be a path"
    name = "the name: " if keys != mistake["loc"] else ""
    return f": {name}{mistake['msg'].removeprefix('Value error, ')}" + _hint(keys, shape)


def _how_to_write_seconds(value: object) -> str:
    """Explain a wrong number of seconds. Other values than durations are not shown, because they may be secrets."""
    written = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if written is None:
        return "must be a number of seconds, such as 30"
    number, unit = written.groups()
    factor = _SECONDS_OF[unit if unit == "ms" else unit[0]]
    return f"must be a number of seconds: write {float(number) * factor:.12g} instead of {value!r}"


def _hint(keys: Keys, shape: Shape) -> str:
    """Say what replaces an old key, or suggest the nearest one, if there is none of that name."""
    fields = shape.at(*keys[:-1]).fields
    last = str(keys[-1]) if keys else ""
    if not keys or not fields or last in fields:
        return ""
    of_tool = len(keys) == 3 and keys[0] in ("tools", "toolsets")
    advice = ADVICE.get(dotted((keys[0], "*", last) if of_tool else keys))
    if advice is not None:
        return f"; {advice}"
    if last.removesuffix("_file") in fields:
        return "; only secrets are read from files"
    near = similar(last, fields)
    return f"; did you mean {near!r}?" if near else ""


def _origins(keys: Keys, combined: FlatValues) -> str:
    """Name the origin of a value, or of every value in the table that has the mistake."""
    found = origin_in(combined, keys)
    if found is not None:
        return str(found)
    table = next((table for table in prefixes(keys) if inside(combined, table)), ())
    values = [combined[one] for one in inside(combined, table)] if table or not keys else []
    # In a file, the line of the table counts.
    places = [
        one.locate(one.written[: len(table)]) if one.origin.source is Source.FILE else one.origin for one in values
    ]
    if len(set(places)) == 1:
        return str(places[0])
    shown = [f"{dotted(one.written)}: {one.origin}" for one in values[:_MOST_ORIGINS]]
    return "; ".join([*shown, "…"] if len(values) > _MOST_ORIGINS else shown)


def line_of(path: Path, keys: Keys) -> int | None:
    """Find the line of a key, or of its table; None if the file contains neither."""
    try:
        lines = lines_of(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    return next((lines[keys[:length]] for length in range(len(keys), 0, -1) if keys[:length] in lines), None)


@lru_cache(maxsize=4)
def lines_of(text: str) -> Mapping[Keys, int]:
    """Find the line of every key and table in a valid file."""
    lines: dict[Keys, int] = {}
    counts: dict[Keys, int] = {}
    """How many tables each list of tables has so far."""
    table: Keys = ()
    for line, statement, parsed in _statements(text):
        if statement.startswith("["):
            table = _open_table(parsed, counts, is_item=statement.startswith("[["))
            lines.setdefault(table, line)
        else:
            for keys in _keys_in(parsed):
                lines.setdefault((*table, *keys), line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Split a file into statements: a line, or as many lines as are needed until they can be parsed."""
    start, statement = 1, ""
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        statement += line
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        if parsed:
            yield start, statement.lstrip(), parsed
        start, statement = number + 1, ""


def _open_table(parsed: Mapping[str, Any], counts: dict[Keys, int], *, is_item: bool) -> Keys:
    """Return the path of a table from its header; in a list of tables, that of the last one."""
    names = _names(parsed)
    table: Keys = ()
    for index, name in enumerate(names):
        table = (*table, name)
        if is_item and index == len(names) - 1:
            counts[table] = counts.get(table, 0) + 1
        if table in counts:
            table = (*table, counts[table] - 1)
    return table


def _names(parsed: Any) -> list[str]:
    names = []
    while parsed:
        if isinstance(parsed, list):
            parsed = parsed[0]
            continue
        [(name, parsed)] = parsed.items()
        names.append(name)
    return names


def _keys_in(parsed: Any, keys: Keys = ()) -> Iterator[Keys]:
    if keys:
        yield keys
    if isinstance(parsed, dict):
        for key, value in parsed.items():
            yield from _keys_in(value, (*keys, key))
    elif isinstance(parsed, list):
        for index, value in enumerate(parsed):
            yield from _keys_in(value, (*keys, index))
