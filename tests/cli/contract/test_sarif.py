"""SARIF: reports for code hosts, with lines of the lock file."""

import json
from typing import Any, Final

import jsonschema_rs
import pytest

from axolotl_core.contract.changes import RULES
from tests.cli.conftest import CommandLine
from tests.cli.contract.test_contract_command import Shop

TEXT: Final = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}},
               "additionalProperties": False}  # fmt: skip
LOCATION: Final = {
    "type": "object",
    "required": ["physicalLocation"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "minimum": -1},
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation", "region"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "additionalProperties": False,
                    "properties": {"uri": {"type": "string", "format": "uri-reference"}},
                },
                "region": {
                    "type": "object",
                    "required": ["startLine"],
                    "additionalProperties": False,
                    "properties": {"startLine": {"type": "integer", "minimum": 1}},
                },
            },
        },
    },
}
RESULT: Final = {
    "type": "object",
    "required": ["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"],
    "additionalProperties": False,
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": TEXT,
        "locations": {"type": "array", "minItems": 1, "items": LOCATION},
        "relatedLocations": {"type": "array", "uniqueItems": True, "items": LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
        "properties": {"type": "object"},
    },
}
RULE: Final = {
    "type": "object",
    "required": ["id", "shortDescription"],
    "additionalProperties": False,
    "properties": {"id": {"type": "string"}, "shortDescription": TEXT},
}
DRIVER: Final = {
    "type": "object",
    "required": ["name", "rules"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string"}, "rules": {"type": "array", "uniqueItems": True, "items": RULE}},
}
SARIF: Final = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "additionalProperties": False,
                        "properties": {"driver": DRIVER},
                    },
                    "results": {"type": "array", "items": RESULT},
                },
            },
        },
    },
}
"""The part of the schema of SARIF 2.1.0 that reports use; nothing else is allowed."""


@pytest.fixture
def shop(cli: CommandLine) -> Shop:
    """Write a project to the directory of the commands."""
    return Shop(cli)


def sarif_of(cli: CommandLine, *words: str) -> Any:
    document = json.loads(cli("contract", *words, "--format", "sarif").stdout)
    jsonschema_rs.validate(SARIF, document)
    [run] = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert {*rules} <= {*RULES, "lock-stale"}
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    return run["results"]


def place_of(result: Any, key: str = "locations") -> tuple[str, int]:
    place = result[key][0]["physicalLocation"]
    return place["artifactLocation"]["uri"], place["region"]["startLine"]


def test_a_result_points_to_the_lock_file_and_the_code(cli: CommandLine, shop: Shop) -> None:
    """The location is the line of the lock file, the related location the class of the tool."""
    cli("contract", "freeze")
    shop.change(number="str", description="Follow an order.", timeout=60)
    results = sarif_of(cli, "diff")
    assert [result["level"] for result in results] == ["error", "warning", "note"]
    lines = (cli.directory / "axolotl.lock.json").read_text(encoding="utf-8").splitlines()
    path, line = place_of(results[0])
    assert (path, lines[line - 1].strip()) == ("axolotl.lock.json", '"type": "integer"')
    code = (cli.directory / "shop.py").read_text(encoding="utf-8").splitlines()
    path, line = place_of(results[0], "relatedLocations")
    assert (path, code[line - 1]) == ("shop.py", "class Track(ITool[Number, str]):")
    assert lines[place_of(results[1])[1] - 1].strip() == '"description": "Track an order.",'
    assert lines[place_of(results[2])[1] - 1].strip() == '"timeout_seconds": 30.0'


def test_fingerprints_stay(cli: CommandLine, shop: Shop) -> None:
    """The same change has the same fingerprint in the next report, and other changes have others."""
    cli("contract", "freeze")
    shop.change(number="str", timeout=10)
    first = [result["partialFingerprints"] for result in sarif_of(cli, "diff")]
    shop.change(number="str", timeout=5)
    assert first == [result["partialFingerprints"] for result in sarif_of(cli, "diff")]
    assert first[0] != first[1]


def test_a_stale_lock_is_a_result(cli: CommandLine, shop: Shop) -> None:
    """A check reports a lock file that is not up to date, and features without a line at their nearest place."""
    cli("contract", "freeze", "--toolset", "read")
    results = sarif_of(cli, "check")
    assert [result["ruleId"] for result in results] == ["lock-stale", "feature-added"]
    lines = (cli.directory / "axolotl.lock.json").read_text(encoding="utf-8").splitlines()
    assert lines[place_of(results[1])[1] - 1].strip() == '"tools": {'
