"""The example of the page about workers."""

import tomllib
from pathlib import Path

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_server.hosting.worker_settings import for_worker
from axolotl_server.settings.server import ServerSettings
from tests.support.docs.pages import EXAMPLES


def settings_of_the_page() -> ServerSettings:
    said = tomllib.loads((EXAMPLES / "workers.toml").read_text(encoding="utf-8"))
    return ServerSettings.model_validate(said)


def test_the_settings_of_the_page() -> None:
    """Four workers share sessions and a key, and each has its own log."""
    settings = settings_of_the_page()
    assert settings.http.workers == 4
    assert settings.redis.url is not None
    adapted = [for_worker(settings, number, "a key that all workers have") for number in (1, 2)]
    assert [one.audit.jsonl_path for one in adapted] == [Path("audit-1.jsonl"), Path("audit-2.jsonl")]
    [[first], [second]] = [one.protocol.state_keys for one in adapted]
    assert first == second


def test_a_key_of_the_settings_is_kept() -> None:
    """If the settings contain keys, replicas share them, and workers do not generate any."""
    settings = ServerSettings.model_validate({"protocol": {"state_keys": ["0123456789abcdef"]}})
    assert for_worker(settings, 1, "another").protocol.state_keys == settings.protocol.state_keys


def test_a_directory_for_sessions() -> None:
    """Workers share sessions in the directory of their supervisor, unless the settings name a Redis or a directory."""
    for settings, directory in (
        ({}, Path("/shared")),
        ({"sessions": {"directory": "/own"}}, Path("/own")),
        ({"redis": {"url": "redis://127.0.0.1"}}, None),
    ):
        adapted = for_worker(ServerSettings.model_validate(settings), 1, "a key", "/shared")
        assert adapted.sessions.directory == directory


def test_a_log_for_all_is_refused() -> None:
    """A log path without a placeholder for the worker is rejected with an explanation."""
    settings = ServerSettings.model_validate({"audit": {"jsonl_path": "a.jsonl"}})
    with pytest.raises(ConfigurationError, match=r"audit\.jsonl_path needs \{worker\} in its name") as told:
        for_worker(settings, 1, "a key")
    assert len(told.value.findings) == 1
