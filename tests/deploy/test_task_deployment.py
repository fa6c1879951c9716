"""The deployment files for workers that run tasks: they agree with each other, and their commands run on Postgres."""

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY
from axolotl_core.task_engine import TASKS_EXTENSION
from axolotl_server.access.api_keys import hash_key
from axolotl_server.execution.closing import CLOSE_SECONDS
from tests.deploy.files import DEPLOY, compose, compose_variables, resource
from tests.deploy.test_deployment_files import MARGIN_SECONDS, STATE_KEY, check_command, seconds
from tests.support.peers.wire import META, message, mirrored
from tests.support.processes import Processes
from tests.support.stores.postgres_server import program, require_postgres, shared_postgres
from tests.support.stores.redis_server import RedisServer

TARGET = "tests/support/containers/note_tools.py:Container"
KEY = "axk_not-a-secret-but-long-enough"
KINDS = {"Job": "axolotl-tasks-prepare", "Deployment": "axolotl-worker"}


@pytest.mark.parametrize("service", ["prepare", "task-server", "worker"])
def test_composed_services(service: str) -> None:
    """Commands are valid, secrets are files that the service gets, and only the owner of the database makes tables."""
    made = compose()["services"][service]
    assert check_command(made["command"]) == {"prepare": "tasks", "task-server": "serve", "worker": "worker"}[service]
    variables = made["environment"]
    files = {Path(value).name for name, value in variables.items() if name.endswith("_FILE")}
    assert files == set(made["secrets"]) == {"owner-url" if service == "prepare" else "worker-url", "state-key"}
    assert not [value for value in variables.values() if "postgresql://" in value]
    assert made["read_only"] is True
    assert made["cap_drop"] == ["ALL"]
    assert made["profiles"] == ["tasks"]
    if service != "prepare":
        assert variables["AXOLOTL_TASKS__RUN_HERE"] == "false"
        times = float(variables["AXOLOTL_HTTP__DRAIN_SECONDS"]) + CLOSE_SECONDS
        assert seconds(made["stop_grace_period"]) > times + MARGIN_SECONDS
        assert made["depends_on"]["prepare"] == {"condition": "service_completed_successfully"}


def test_composed_health_checks() -> None:
    """Workers are asked on the address that they answer on, and the job that ends is not asked."""
    services = compose()["services"]
    command, check = services["worker"]["command"], services["worker"]["healthcheck"]["test"]
    assert check_command(check[2:]) == "health"
    assert check[check.index("--url") + 1] == f"http://{command[command.index('--health') + 1]}/readyz"
    assert services["prepare"]["healthcheck"] == {"disable": True}


def test_secrets_are_not_in_the_repository() -> None:
    """The files with secrets are created by the commands at the top, and git ignores them."""
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    for name, secret in compose()["secrets"].items():
        assert secret == {"file": f"secrets/{name}"}
        assert f"> secrets/{name}\n" in text
    assert "/deploy/secrets/\n" in (DEPLOY.parent / ".gitignore").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_pods(kind: str) -> None:
    """Pods are confined like those of the server, and the files that settings name are mounted secrets."""
    pod = resource(kind, KINDS[kind])["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    served = resource("Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"] == served["securityContext"]
    assert container["securityContext"] == served["containers"][0]["securityContext"]
    assert pod["enableServiceLinks"] is pod["automountServiceAccountToken"] is False
    assert check_command(container["args"]) in ("tasks", "worker")
    volumes = {one["name"]: one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one}
    mounted = {
        f"{mount['mountPath']}/{key}"
        for mount in container["volumeMounts"]
        if mount["name"] in volumes
        for key in resource("Secret", volumes[mount["name"]])["stringData"]
    }
    variables = {one["name"]: one.get("value", "") for one in container["env"]}
    for source in container.get("envFrom", ()):
        variables |= resource("ConfigMap", source["configMapRef"]["name"])["data"]
    assert {value for name, value in variables.items() if name.endswith("_FILE")} <= mounted


def test_workers_in_kubernetes() -> None:
    """Probes ask what the worker answers, it has time to drain, and it writes audit logs where the server does."""
    pod = resource("Deployment", "axolotl-worker")["spec"]["template"]["spec"]
    (worker,) = pod["containers"]
    (port,) = worker["ports"]
    assert worker["args"][-1] == f"0.0.0.0:{port['containerPort']}"
    asked = {name: worker[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert [get["path"] for get in asked.values()] == ["/livez", "/livez", "/readyz"]
    assert {get["port"] for get in asked.values()} == {port["name"]}
    data = resource("ConfigMap")["data"]
    times = float(data["AXOLOTL_HTTP__DRAIN_SECONDS"]) + CLOSE_SECONDS
    assert pod["terminationGracePeriodSeconds"] > times + MARGIN_SECONDS
    (audit,) = (one for one in worker["volumeMounts"] if one["name"] == "audit")
    assert data["AXOLOTL_AUDIT__JSONL_PATH"].startswith(f"{audit['mountPath']}/")


def test_the_server_gets_the_settings_of_tasks() -> None:
    """The server has the settings and the secret of tasks if they exist, and starts without them."""
    pod = resource("Deployment")["spec"]["template"]["spec"]
    (served,), (worker,) = (
        pod["containers"],
        resource("Deployment", "axolotl-worker")["spec"]["template"]["spec"]["containers"],
    )
    optional = [source["configMapRef"] for source in served["envFrom"] if source["configMapRef"].get("optional")]
    assert [one["name"] for one in optional] == [worker["envFrom"][1]["configMapRef"]["name"]] == ["axolotl-tasks"]
    (mounted,) = (one for one in served["volumeMounts"] if one["name"] == "tasks")
    assert mounted in worker["volumeMounts"]
    (volume,) = (one["secret"] for one in pod["volumes"] if one["name"] == "tasks")
    assert volume["optional"] is True
    database = resource("NetworkPolicy", "axolotl-postgres")["spec"]["podSelector"]["matchExpressions"][0]["values"]
    assert set(database) == {"axolotl", *KINDS.values()}


@pytest.fixture
def roles(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A database with the roles of the file, and the URLs of both."""
    require_postgres()
    postgres, psql = shared_postgres(), program("psql")
    assert psql is not None
    (tmp_path / "worker-password").write_text("not used\n")
    script = (DEPLOY / "roles.sql").read_text().replace("/run/secrets", str(tmp_path))
    (tmp_path / "roles.sql").write_text(script)
    postgres.psql("create role owner login")
    postgres.psql("create database deployed owner owner")
    postgres.psql("alter role owner createrole")
    subprocess.run(
        [
            psql,
            "-h",
            postgres.directory,
            "-U",
            "owner",
            "-d",
            "deployed",
            "-v",
            "ON_ERROR_STOP=1",
            "-f",
            tmp_path / "roles.sql",
        ],
        check=True,
        capture_output=True,
    )
    base = postgres.url("deployed")
    yield {role: base.replace("//axolotl@", f"//{role}@") for role in ("owner", "worker")}
    postgres.psql("drop database deployed with (force)")
    postgres.psql("drop role worker, owner")


@pytest.mark.slow
def test_the_compose_file_runs_tasks(roles: dict[str, str], tmp_path: Path) -> None:
    """The owner prepares the tables, which the others may not; a worker runs the task that the server accepted."""
    for name, text in {"owner-url": roles["owner"], "worker-url": roles["worker"], "state-key": STATE_KEY}.items():
        (tmp_path / name).write_text(text + "\n")
    services = compose()["services"]

    def variables(service: str) -> Any:
        found = compose_variables(service, API_KEY_HASH=hash_key(KEY))
        for there, here in {"/run/secrets": str(tmp_path), "/var/lib/axolotl": str(tmp_path)}.items():
            found = {name: value.replace(there, here) for name, value in found.items()}
        if "AXOLOTL_REDIS__URL" in found:
            found["AXOLOTL_REDIS__URL"] = redis.url
        return {**found, "AXOLOTL_HTTP__HOST": "127.0.0.1", "AXOLOTL_HTTP__PORT": "0"}

    def words(service: str) -> list[str]:
        here = {"acme.container:Container": TARGET, "127.0.0.1:8080": "127.0.0.1:0"}
        return [here.get(word, word) for word in services[service]["command"]]

    with RedisServer() as redis, Processes() as processes:
        early = processes.run(*words("worker"), **variables("worker"))
        assert early[0] != 0
        assert "axolotl tasks prepare" in early[2]
        assert processes.run(*words("prepare"), **variables("worker"))[0] != 0
        for _ in range(2):
            code, said, trouble = processes.run(*words("prepare"), **variables("prepare"))
            assert (code, said) == (0, "The store of tasks is ready.\n"), trouble
        worker = processes.start(*words("worker"), **variables("worker"))
        probed = re.search(r"answered on 127\.0\.0\.1, port (\d+)", worker.read_until("running tasks of"))
        assert probed is not None
        probe = [word.replace(":8080", f":{probed[1]}") for word in services["worker"]["healthcheck"]["test"][2:]]
        assert processes.run(*probe)[:2] == (0, "ready\n")
        server = processes.start(*words("task-server"), **variables("task-server"))
        address = re.search(r"http://127\.0\.0\.1:\d+", server.read_until("http://127.0.0.1:"))
        assert address is not None
        with closing(httpx2.Client(base_url=address[0], headers={"authorization": f"Bearer {KEY}"})) as client:
            assert run_task(client, tmp_path / "notes") == 7
        assert (tmp_path / "notes").read_text() == "begin 7\nend 7\n"
        for process in (worker, server):
            process.signal(signal.SIGTERM)
            code, _, stderr = process.end()
            assert code == 0, stderr


def run_task(client: httpx2.Client, notes: Path) -> Any:
    """Call a tool as a task, and wait for its result."""
    task = ask(client, "tools/call", "note", {"name": "note", "arguments": {"path": str(notes), "number": 7}})
    assert task["resultType"] == "task", task
    while (got := ask(client, "tasks/get", task["taskId"], {"taskId": task["taskId"]}))["status"] == "working":
        pass
    return got["result"]["structuredContent"]


def ask(client: httpx2.Client, method: str, name: str, params: dict[str, Any]) -> Any:
    meta = {**META, CLIENT_CAPABILITIES_KEY: {"extensions": {TASKS_EXTENSION: {}}}}
    reply = client.post("/mcp", content=message(method, {**params, "_meta": meta}), headers=mirrored(method, name))
    assert reply.status_code == 200, reply.text
    return reply.json()["result"]
