"""Settings in environment variables."""

from pathlib import Path

import pytest

from axolotl_core import ConfigurationError
from axolotl_examples.three_good_sources import Container
from axolotl_examples.three_good_sources.configuration import Configuration


def test_defaults() -> None:
    """By default, the shipped registry and its curator's key are used."""
    configuration = Configuration.from_environment({"PATH": "/bin"})
    assert (configuration.threshold, configuration.keyword_weight) == (0.4, 0.25)
    assert configuration.registry_file.name == "registry.json"
    assert configuration.public_key_file is not None


def test_environment() -> None:
    """Every setting can be changed; an empty key disables verification."""
    configuration = Configuration.from_environment(
        {
            "THREE_GOOD_SOURCES_REGISTRY_FILE": "mine.json",
            "THREE_GOOD_SOURCES_PUBLIC_KEY_FILE": "",
            "THREE_GOOD_SOURCES_THRESHOLD": "0.5",
            "THREE_GOOD_SOURCES_KEYWORD_WEIGHT": "1",
        }
    )
    assert configuration == Configuration(
        registry_file=Path("mine.json"), public_key_file=None, threshold=0.5, keyword_weight=1.0
    )


@pytest.mark.parametrize(
    ("name", "value", "finding"),
    [
        ("THRESHOLD", "high", "THREE_GOOD_SOURCES_THRESHOLD: Input should be a valid number"),
        ("THRESHOLD", "1.5", "THREE_GOOD_SOURCES_THRESHOLD: Input should be less than or equal to 1"),
        ("THRESHOLD", "nan", "THREE_GOOD_SOURCES_THRESHOLD: Input should be"),
        ("THRESHOLD", "", "THREE_GOOD_SOURCES_THRESHOLD: Input should be a valid number"),
        ("REGISTRY_FILE", "", "THREE_GOOD_SOURCES_REGISTRY_FILE: Input is not a valid path"),
        ("TRESHOLD", "0.5", "THREE_GOOD_SOURCES_TRESHOLD: unknown"),
    ],
)
def test_wrong_values(name: str, value: str, finding: str) -> None:
    """An invalid value or an unknown name is reported with the variable."""
    with pytest.raises(ConfigurationError) as refused:
        Configuration.from_environment({f"THREE_GOOD_SOURCES_{name}": value})
    [found] = refused.value.findings
    assert found.startswith(finding)


def test_container_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment is read when the container creates its settings, not on import."""
    monkeypatch.setenv("THREE_GOOD_SOURCES_THRESHOLD", "0.6")
    assert Container().configuration().threshold == 0.6
