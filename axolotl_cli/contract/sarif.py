"""Reports in SARIF 2.1.0, which code hosts show next to the lines of a pull request."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from axolotl_cli.contract.change_report import Comparison
from axolotl_core.contract.changes import RULES, ContractChange, Impact
from axolotl_core.contract.lock import LOCK_FILE

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {Impact.BREAKING: "error", Impact.RISKY: "warning", Impact.COMPATIBLE: "note"}
_STALE: Final = "lock-stale"


def as_sarif(comparison: Comparison) -> dict[str, Any]:
    """Write the changes as SARIF; their places are lines of the lock file."""
    path = Path(LOCK_FILE)
    document = json.loads(path.read_bytes()) if path.is_file() else comparison.lock.document
    lines = dict(_lines(document, "", [1]))
    results = [_result(change, comparison, lines) for change in comparison.changes]
    if comparison.is_stale:
        results.insert(0, _stale_result())
    used = list(dict.fromkeys(result["ruleId"] for result in results))
    driver = {
        "name": "axolotl contract",
        "rules": [{"id": rule, "shortDescription": {"text": _described(rule)}} for rule in used],
    }
    for result in results:
        result["ruleIndex"] = used.index(result["ruleId"])
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _described(rule: str) -> str:
    return RULES.get(rule, "The lock file differs from the code")


def _result(change: ContractChange, comparison: Comparison, lines: Mapping[str, int]) -> dict[str, Any]:
    text = f"{change.description} (undecided)" if change.undecided else change.description
    pointer = f"/{change.kind}/{_escaped(change.feature)}{change.pointer}"
    fingerprint = sha256(f"{change.rule}\n{pointer}".encode()).hexdigest()
    result: dict[str, Any] = {
        "ruleId": change.rule,
        "level": _LEVELS[change.impact],
        "message": {"text": text},
        "locations": [_location(LOCK_FILE, _nearest_line(pointer, lines))],
        "partialFingerprints": {"axolotlContract/v1": fingerprint},
        "properties": {"class": change.impact.value, "undecided": change.undecided},
    }
    place = comparison.places.get((change.kind, change.feature))
    if place is not None:
        result["relatedLocations"] = [{"id": 1, **_location(place.path, place.line)}]
    return result


def _stale_result() -> dict[str, Any]:
    return {
        "ruleId": _STALE,
        "level": "error",
        "message": {"text": f"{LOCK_FILE} differs from the code: run axolotl contract freeze"},
        "locations": [_location(LOCK_FILE, 1)],
        "partialFingerprints": {"axolotlContract/v1": sha256(_STALE.encode()).hexdigest()},
    }


def _location(path: str, line: int) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": path}, "region": {"startLine": line}}}


def _nearest_line(pointer: str, lines: Mapping[str, int]) -> int:
    """Find the line of a place, or of the part around it: schemas are compared without their references."""
    while pointer not in lines:
        pointer = pointer.rpartition("/")[0]
    return lines[pointer]


def _lines(value: Any, pointer: str, line: list[int]) -> Iterator[tuple[str, int]]:
    """Count the lines of sorted JSON with indentation, a line for each bracket and each scalar."""
    yield pointer, line[0]
    if isinstance(value, Mapping) and value:
        for key in sorted(value):
            line[0] += 1
            yield from _lines(value[key], f"{pointer}/{_escaped(key)}", line)
        line[0] += 1
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            line[0] += 1
            yield from _lines(item, f"{pointer}/{index}", line)
        line[0] += 1


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
