"""`axolotl auth`, and servers that others can reach."""

import json
import re
import sys
import tomllib
from typing import Any

import jwt
import pytest

from tests.cli.conftest import CommandLine
from tests.cli.serving.test_serve_http import SAMPLE, paste, start
from tests.support.processes import READY, Processes, imported_modules

OPEN = {"AXOLOTL_HTTP__ALLOW_UNAUTHENTICATED": "true"}


def test_a_key(cli: CommandLine) -> None:
    """A key is random, and the printed setting is valid TOML."""
    first, second = cli("auth", "hash-key", "ci"), cli("auth", "hash-key", "ci")
    assert (first.code, second.code) == (0, 0)
    keys = [re.findall(r"axk_[\w-]{43}", answer.stdout) for answer in (first, second)]
    assert len({key for [key] in keys}) == 2
    section = tomllib.loads(first.stdout.partition("[")[1] + first.stdout.partition("[")[2])
    assert re.fullmatch("sha256:[0-9a-f]{64}", section["auth"]["api_keys"]["ci"]["hash"])


def test_a_key_for_programs(cli: CommandLine) -> None:
    """`--json` prints the key and its hash."""
    created = json.loads(cli("auth", "hash-key", "ci", "--json").stdout)
    assert created.keys() == {"name", "key", "hash"}


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ä", "x" * 65])
def test_invalid_names(cli: CommandLine, name: str) -> None:
    """A name that is invalid in the settings is refused."""
    answer = cli("auth", "hash-key", name)
    assert answer.code == 2
    assert "use letters" in answer.stderr


def test_a_server_with_a_key(processes: Processes) -> None:
    """A server with an API key serves only clients with that key, on any address."""
    created = json.loads(processes.run("auth", "hash-key", "ci", "--json")[1])
    environment = {"AXOLOTL_AUTH__API_KEYS__CI__HASH": created["hash"]}
    _, banner = start(processes, SAMPLE, "--host", "0.0.0.0", **environment)
    assert paste(banner).status_code == 401
    answer = paste(banner.replace("YOUR-TOKEN", created["key"]))
    assert answer.json()["result"]["content"][0]["text"] == "Hello, hello!"


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_public_addresses_need_authentication(processes: Processes, host: str) -> None:
    """A server without authentication does not start on a public address, and the error says what to do."""
    code, stdout, stderr = processes.run("serve", SAMPLE, "-t", "http", "--host", host, "--port", "0")
    assert (code, stdout) == (2, "")
    assert stderr.startswith(f"Error: Anyone who can reach {host} could use this server. Configure auth")
    assert stderr.endswith("set http.allow_unauthenticated = true\n")
    assert READY not in stderr


def test_explicitly_unauthenticated(processes: Processes) -> None:
    """With `http.allow_unauthenticated` it does start."""
    _, banner = start(processes, SAMPLE, "--host", "0.0.0.0", **OPEN)
    assert " at http://0.0.0.0:" in banner.splitlines()[0]
    assert paste(banner).status_code == 200


@pytest.mark.parametrize(
    ("name", "value", "finding"),
    [
        ("AXOLOTL_AUTH__REQUIRED_SCOPES", '["read"]', "Nothing verifies tokens"),
        ("AXOLOTL_HTTP__TLS_CERTIFICATE", "/nowhere.pem", "/nowhere.pem cannot be used"),
        ("AXOLOTL_HTTP__ALLOWED_HOSTS", '["*"]', "allow_any_host = true"),
    ],
)
def test_errors_before_the_banner(processes: Processes, name: str, value: str, finding: str) -> None:
    """Invalid settings for tokens or certificates end the start with 2, before the banner."""
    environment: Any = {name: value}
    code, stdout, stderr = processes.run("serve", SAMPLE, "-t", "http", "--port", "0", **environment)
    assert (code, stdout) == (2, "")
    assert finding in stderr
    assert "serves" not in stderr


def test_check(cli: CommandLine) -> None:
    """`axolotl check` finds invalid settings for tokens."""
    cli.write(
        "axolotl.toml",
        'target = "tests.support.containers.command_containers:Container"\n[auth]\nrequired_scopes = ["read"]\n',
    )
    answer = cli("check")
    assert answer.code != 0
    assert "Nothing verifies tokens" in answer.stdout + answer.stderr


def test_imports_without_authentication() -> None:
    """A server without authentication does not import what verifies tokens."""
    modules = set(imported_modules("list", SAMPLE))
    assert "axolotl_server.host" in modules
    assert modules.isdisjoint({"jwt", "httpx2", "axolotl_server.access.gate", "axolotl_server.access.verifiers"})


def test_doctor(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report fits on a screen, names the setting with its line, and never contains the token."""
    cli.write(
        "axolotl.toml",
        '[auth]\nresource = "https://mcp.example.com/mcp"\nissuers = ["https://issuer.example"]\n'
        'hmac_secret = "0123456789012345678901234567890123456789"\n',
    )
    monkeypatch.setenv("TOKEN", "secret-token")
    target = "tests.support.containers.command_containers:Container"
    answer = cli("auth", "doctor", target, "--token-env", "TOKEN")
    assert answer.code == 1
    assert "token: the token is not a JWT" in answer.stdout
    assert "setting: auth.introspection_url" in answer.stdout
    assert len(answer.stdout.splitlines()) <= 24
    assert "secret-token" not in answer.stdout + answer.stderr
    wrong = cli("auth", "doctor", target, "--url", "https://other.example/mcp", "--json")
    assert wrong.code == 2
    assert json.loads(wrong.stdout)["findings"][0]["setting"] == "auth.resource (axolotl.toml:2)"
    fine = cli("auth", "doctor", target)
    assert (fine.code, "problem" in fine.stdout) == (0, False)
    claims = {"iss": "https://issuer.example", "aud": "https://mcp.example.com/mcp", "sub": "ada", "exp": 2**33}
    monkeypatch.setenv("TOKEN", jwt.encode(claims, "0123456789012345678901234567890123456789", "HS256"))
    seen = cli("auth", "doctor", target, "--token-env", "TOKEN").stdout.splitlines()
    assert [line for line in seen if "policy" in line] == [
        "ok       policy: sees 6 tools; its tools are decided by: default"
    ]
    assert cli("auth", "doctor", target, "--token-env", "NOWHERE").code == 2


def test_doctor_without_its_library(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra `auth`, the report says what to install."""
    cli.write("axolotl.toml", '[auth]\nresource = "http://127.0.0.1:9/mcp"\nissuers = ["http://127.0.0.1:9"]\n')
    for name in [name for name in sys.modules if name.startswith("axolotl_server.access.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jwt", None)
    answer = cli("auth", "doctor", "tests.support.containers.command_containers:Container")
    assert answer.code == 2
    assert "settings: Setting auth.issuers needs the extra auth: pip install 'pyjwt[crypto]" in answer.stdout
