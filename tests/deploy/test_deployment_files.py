"""The deployment files agree with the settings, the commands and each other, without building anything."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from axolotl_cli.app import app
from axolotl_core.errors import ConfigurationError
from axolotl_server.execution.closing import CLOSE_SECONDS
from axolotl_server.host import ServerHost
from axolotl_server.settings.environment import unknown_variables
from axolotl_server.settings.loading import load_settings
from axolotl_server.settings.server import ServerSettings
from axolotl_server.settings.transports import LIVE_PATH, METRICS_PATH, READY_PATH, STARTUP_PATH
from tests.deploy.files import (
    DEPLOY,
    ROOT,
    compose,
    compose_variables,
    documents,
    find,
    project_version,
    reaches_the_builder,
    resource,
    stages_of,
    variables_of,
)
from tests.support.containers.command_containers import Container

MARGIN_SECONDS = 5
HASH = "sha256:" + "0" * 64
PROJECT = ROOT / "docs" / "examples" / "project"
STATE_KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def pristine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove settings of the developer's environment."""
    import os

    for name in os.environ:
        if name.startswith("AXOLOTL_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def settings_of(variables: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> ServerSettings:
    """Load settings like a server that is started with these variables in the image."""
    ours = {name: value for name, value in variables.items() if name.startswith("AXOLOTL_")}
    for name, value in {**image_variables(), **ours}.items():
        monkeypatch.setenv(name, value)
    assert list(unknown_variables(ours)) == []
    return load_settings()


def image_variables() -> dict[str, str]:
    """Return the settings in the image."""
    variables = variables_of(stages_of(ROOT / "Dockerfile")[-1])
    return {name: value for name, value in variables.items() if name.startswith("AXOLOTL_")}


def check_command(words: Sequence[str]) -> str:
    """Check that the arguments of `axolotl` are valid, without running the command."""
    group: Any = get_command(app)
    name, command, rest = group.resolve_command(group.make_context("axolotl", list(words)), list(words))
    command.make_context(name, rest).close()
    return str(name)


def seconds(text: str) -> float:
    """Parse a duration in the format of containers."""
    return float(text.removesuffix("s"))


def ladder_seconds(settings: ServerSettings) -> float:
    """Return the maximum time of a graceful shutdown, as in docs/operate/health.md."""
    http = settings.http
    return http.drain_delay_seconds + http.drain_seconds + CLOSE_SECONDS


class TestImage:
    """The Dockerfile."""

    build, image = stages_of(ROOT / "Dockerfile")

    def test_commands(self) -> None:
        """The image serves over HTTP behind an init process that forwards signals, and has a health check."""
        init, *entry = find(self.image, "ENTRYPOINT").words
        assert (init, entry) == ("tini", ["--", "axolotl"])
        assert check_command(find(self.image, "CMD").words) == "serve"
        program, *probe = find(self.image, "HEALTHCHECK").words
        assert program == "axolotl"
        assert check_command(probe) == "health"
        patience = float(probe[probe.index("--timeout") + 1])
        assert patience < seconds(find(self.image, "HEALTHCHECK").options["timeout"])
        assert find(self.image, "STOPSIGNAL").text == "SIGTERM"

    def test_settings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The image listens on all interfaces at its exposed port, and does not start without authentication."""
        settings = settings_of({}, monkeypatch)
        assert settings.http.host == "0.0.0.0"
        assert str(settings.http.port) == find(self.image, "EXPOSE").text
        assert not settings.http.allow_unauthenticated
        assert not settings.console.enabled

    def test_user(self) -> None:
        """The server runs as a numeric non-root user that owns no files."""
        user, group = find(self.image, "USER").text.split(":")
        assert int(user) > 0
        assert int(group) > 0
        made = " ".join(one.text for one in self.image if one.name == "RUN")
        assert f"--uid {user}" in made
        assert not any("--chown" in one.text for one in self.image)
        last = [one.name for one in self.image]
        assert "RUN" not in last[last.index("USER") :]

    def test_what_is_copied(self) -> None:
        """All copied files exist and reach the builder: all packages and the files to install them."""
        copied = [word for one in self.build if one.name == "COPY" for word in one.text.split()[:-1]]
        assert {path.name for path in ROOT.glob("axolotl_*")} <= set(copied)
        for path in copied:
            assert (ROOT / path).exists()
            assert reaches_the_builder(path)

    @pytest.mark.parametrize("path", [".env", ".git/config", ".venv/bin/python", "tests/conftest.py", "deploy/.env"])
    def test_what_stays_outside(self, path: str) -> None:
        """Secrets, virtual environments and tests do not reach the builder."""
        assert not reaches_the_builder(path)
        assert not reaches_the_builder("axolotl_core/__pycache__/errors.pyc")

    def test_hashes(self) -> None:
        """Everything is installed from the lock file with hashes, and the lock includes what these files need."""
        installs = [one.text for one in self.build if one.name == "RUN" and "install" in one.text]
        assert "--require-hashes" in installs[0]
        assert "-r requirements/runtime.lock" in installs[0]
        assert "--no-index --no-deps" in installs[1]
        assert all("--compile" in one for one in installs)  # the image writes no bytecode
        lock = (ROOT / "requirements" / "runtime.lock").read_text()
        pinned = re.findall(r"^([a-z0-9-]+)==\S+(?: ;[^\\]*)? \\\n    --hash=sha256:", lock, re.MULTILINE)
        assert len(pinned) == len(re.findall(r"^[a-z0-9]", lock, re.MULTILINE))
        assert {"hatchling", "prometheus-client", "pyjwt", "redis", "uvicorn"} <= set(pinned)

    def test_build_tools_are_removed(self) -> None:
        """What only the build needs is not part of the image."""
        (last,) = (one.text for one in self.build if one.name == "RUN" and "--no-build-isolation" in one.text)
        removed = last.partition("uninstall --yes ")[2].split()
        lock = (ROOT / "requirements" / "runtime.lock").read_text()
        for name in removed:
            (reasons,) = re.findall(
                rf"^{name}==.*?\n((?:    # .*\n?)+)", re.sub(r"    --hash.*\n", "", lock), re.MULTILINE
            )
            assert "axolotl-mcp (pyproject.toml)" not in reasons
        assert {"hatchling", "pluggy", "trove-classifiers"} <= set(removed)


class TestCompose:
    """The compose file."""

    server = compose()["services"]["server"]
    redis = compose()["services"]["redis"]

    def settings(self, monkeypatch: pytest.MonkeyPatch) -> ServerSettings:
        """Load the settings of the server."""
        return settings_of(compose_variables(API_KEY_HASH=HASH), monkeypatch)

    def test_shared_state(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Workers share sessions, quotas and results in Redis, which must be healthy before they start."""
        settings = self.settings(monkeypatch)
        assert settings.http.workers > 1
        assert settings.redis.url is not None
        assert settings.redis.url.get_secret_value() == "redis://redis:6379/0"
        assert self.server["depends_on"] == {"redis": {"condition": "service_healthy"}}
        assert "noeviction" in self.redis["command"]

    def test_reach(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The server is published only on localhost and requires a key; Redis is not published."""
        settings = self.settings(monkeypatch)
        assert self.server["ports"] == [f"127.0.0.1:{settings.http.port}:{settings.http.port}"]
        assert list(settings.auth.api_keys) == ["local"]
        assert "ports" not in self.redis
        (network,) = self.redis["networks"]
        assert compose()["networks"][network]["internal"] is True
        assert network in self.server["networks"]

    def test_no_key_no_start(self) -> None:
        """Compose refuses to start without the hash of a key, and explains how to create one."""
        text = self.server["environment"]["AXOLOTL_AUTH__API_KEYS__LOCAL__HASH"]
        assert re.fullmatch(r"\$\{API_KEY_HASH:\?create one with axolotl auth hash-key local\}", text)
        assert check_command(["auth", "hash-key", "local"]) == "auth"

    def test_time_to_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The engine waits longer than the server and the supervisor may take to stop."""
        patience = seconds(self.server["stop_grace_period"])
        assert patience > ladder_seconds(self.settings(monkeypatch)) + MARGIN_SECONDS - 1

    def test_audit_logs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each worker writes its audit log to a volume, in a directory that the user of the image may write to."""
        path = str(self.settings(monkeypatch).audit.jsonl_path)
        directory = path.rpartition("/")[0]
        assert "{worker}" in path
        assert self.server["volumes"] == [f"audit:{directory}"]
        assert "audit" in compose()["volumes"]
        user = find(TestImage.image, "USER").text.partition(":")[0]
        made = " ".join(one.text for one in TestImage.image if one.name == "RUN")
        assert re.search(rf"install --directory --owner {user} .* {directory}$", made)

    def test_confinement(self) -> None:
        """Neither service can write to its image, gain privileges, or use capabilities that it does not need."""
        for service in (self.server, self.redis):
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]
            assert service["security_opt"] == ["no-new-privileges:true"]


class TestKubernetes:
    """The manifest."""

    pod = resource("Deployment")["spec"]["template"]["spec"]
    container = pod["containers"][0]

    def settings(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **secrets: str) -> ServerSettings:
        """Load the settings of the server, with its secrets in files."""
        mounts = {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}
        for name, value in {**resource("Secret")["stringData"], **secrets}.items():
            (tmp_path / name).write_text(value)
        variables: dict[str, str] = resource("ConfigMap")["data"]
        assert all(isinstance(value, str) for value in variables.values())
        told = {name: value.replace(mounts["secrets"], str(tmp_path)) for name, value in variables.items()}
        return settings_of(told, monkeypatch)

    def test_settings(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """All variables are settings, secrets come from files, and replicas share their state and its sealing key."""
        settings = self.settings(monkeypatch, tmp_path, **{"state-key": STATE_KEY})
        assert [key.get_secret_value() for key in settings.protocol.state_keys] == [STATE_KEY]
        assert settings.redis.url is not None
        assert settings.auth.resource == f"https://{settings.http.allowed_hosts[0]}{settings.http.path}"
        assert settings.auth.issuers
        assert settings.http.workers == 1

    async def test_placeholder_secrets_are_rejected(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """A forgotten secret causes an error instead of a server with a known key."""
        self.settings(monkeypatch, tmp_path)
        with pytest.raises(ConfigurationError, match="state_keys"):
            await ServerHost(Container()).start()

    def test_secrets_are_those_of_the_manifest(self) -> None:
        """Each file that a setting names is a key of the mounted Secret."""
        (volume,) = (one for one in self.pod["volumes"] if one["name"] == "secrets")
        assert volume["secret"]["secretName"] == resource("Secret")["metadata"]["name"]
        (mount,) = (one for one in self.container["volumeMounts"] if one["name"] == volume["name"])
        files = [value for name, value in resource("ConfigMap")["data"].items() if name.endswith("_FILE")]
        assert {Path(file).name for file in files} == set(resource("Secret")["stringData"])
        assert {str(Path(file).parent) for file in files} == {mount["mountPath"]}
        assert self.container["envFrom"][0] == {"configMapRef": {"name": resource("ConfigMap")["metadata"]["name"]}}

    def test_probes(self) -> None:
        """Probes use the configured routes and the port of the server."""
        asked = {name: self.container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
        assert {name: get["path"] for name, get in asked.items()} == {
            "startup": STARTUP_PATH,
            "liveness": LIVE_PATH,
            "readiness": READY_PATH,
        }
        (port,) = self.container["ports"]
        assert port["containerPort"] == ServerSettings().http.port
        assert {get["port"] for get in asked.values()} == {port["name"]}
        (served,) = resource("Service")["spec"]["ports"]
        assert served["targetPort"] == port["name"]

    def test_time_to_end(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """A pod has more time than a graceful shutdown takes, and serves until all routes to it are removed."""
        settings = self.settings(monkeypatch, tmp_path, **{"state-key": STATE_KEY})
        assert self.pod["terminationGracePeriodSeconds"] > ladder_seconds(settings) + MARGIN_SECONDS
        readiness = self.container["readinessProbe"]
        assert settings.http.drain_delay_seconds >= readiness["periodSeconds"] * readiness["failureThreshold"]

    def test_confinement(self) -> None:
        """The pod meets the restricted profile and has the user of the image."""
        user, group = map(int, find(stages_of(ROOT / "Dockerfile")[-1], "USER").text.split(":"))
        context = self.pod["securityContext"]
        assert context["runAsNonRoot"] is True
        assert (context["runAsUser"], context["runAsGroup"]) == (user, group)
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert self.container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert self.pod["automountServiceAccountToken"] is False
        assert "memory" in self.container["resources"]["limits"]
        assert self.container["resources"]["requests"].keys() == {"cpu", "memory"}

    def test_readiness_tolerates_one_slow_answer(self) -> None:
        """A pod is removed after several failed probes, not after one."""
        assert self.container["readinessProbe"]["failureThreshold"] >= 3

    def test_metrics_are_scraped(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Pods have annotations for Prometheus; neither the gateway nor nginx routes metrics or health checks."""
        settings = self.settings(monkeypatch, tmp_path, **{"state-key": STATE_KEY})
        annotations = resource("Deployment")["spec"]["template"]["metadata"]["annotations"]
        assert settings.metrics.enabled
        assert annotations == {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(settings.http.port),
            "prometheus.io/path": METRICS_PATH,
        }

    def test_network_policy(self) -> None:
        """Only the gateway and Prometheus can connect, and the server reaches DNS, the issuer and Redis only."""
        policy = resource("NetworkPolicy")["spec"]
        assert policy["podSelector"] == resource("Deployment")["spec"]["selector"]
        assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
        (ingress,) = policy["ingress"]
        assert len(ingress["from"]) == 2
        assert ingress["ports"] == [{"port": self.container["ports"][0]["name"]}]
        (egress,) = policy["egress"]
        assert {one["port"] for one in egress["ports"]} == {53, 443, 6379}

    def test_audit_logs(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Each pod writes its audit log to its own directory of a volume that outlives it."""
        settings = self.settings(monkeypatch, tmp_path, **{"state-key": STATE_KEY})
        (mount,) = (one for one in self.container["volumeMounts"] if one["name"] == "audit")
        assert str(settings.audit.jsonl_path).startswith(f"{mount['mountPath']}/")
        assert mount["subPathExpr"] == f"$({self.container['env'][0]['name']})"
        (volume,) = (one for one in self.pod["volumes"] if one["name"] == "audit")
        claim = resource("PersistentVolumeClaim", "axolotl-audit")
        assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        assert claim["spec"]["accessModes"] == ["ReadWriteMany"]

    def test_the_page_has_the_same_times(self) -> None:
        """The page about health checks has the grace period, the delay and the thresholds of the manifest."""
        page = (ROOT / "docs" / "operate" / "health.md").read_text(encoding="utf-8")
        readiness = self.container["readinessProbe"]
        assert f"terminationGracePeriodSeconds: {self.pod['terminationGracePeriodSeconds']}\n" in page
        delay = resource("ConfigMap")["data"]["AXOLOTL_HTTP__DRAIN_DELAY_SECONDS"]
        assert f'AXOLOTL_HTTP__DRAIN_DELAY_SECONDS, value: "{delay}"' in page
        assert f"periodSeconds: {readiness['periodSeconds']}\n" in page

    def test_variables_of_services(self) -> None:
        """Service environment variables are off, because those of a service named axolotl would look like settings."""
        assert self.pod["enableServiceLinks"] is False

    def test_parts_fit(self) -> None:
        """Selectors match the pods, the disruption budget allows one missing pod, and the command is valid."""
        labels = resource("Deployment")["spec"]["template"]["metadata"]["labels"]
        assert resource("Deployment")["spec"]["selector"]["matchLabels"] == labels
        assert resource("Service")["spec"]["selector"] == labels
        budget = resource("PodDisruptionBudget")["spec"]
        assert budget["selector"]["matchLabels"] == labels
        assert budget["minAvailable"] < resource("Deployment")["spec"]["replicas"]
        assert check_command(self.container["args"]) == "serve"


class TestProxies:
    """The files for reverse proxies."""

    nginx = (DEPLOY / "nginx.conf").read_text()

    def test_nginx(self) -> None:
        """nginx forwards only the endpoint and the metadata, with the size and time limits of the server."""
        settings = ServerSettings()
        assert re.findall(r"location (?:= )?(\S+) \{\s+proxy_pass", self.nginx) == [
            settings.http.path,
            "/.well-known/oauth-protected-resource",
        ]
        assert re.search(r"location / \{\s+return 404;", self.nginx)
        assert f"server 127.0.0.1:{settings.http.port};" in self.nginx
        (size,) = re.findall(r"client_max_body_size (\d+)m;", self.nginx)
        assert int(size) * 1024 * 1024 == settings.limits.max_message_bytes
        (patience,) = re.findall(r"proxy_read_timeout (\d+)s;", self.nginx)
        longest = max(settings.limits.max_timeout_seconds, settings.limits.ask_timeout_seconds)
        assert int(patience) > longest > settings.http.keep_alive_seconds
        assert "proxy_buffering off;" in self.nginx
        assert "proxy_set_header Host $host;" in self.nginx
        assert "proxy_set_header X-Forwarded-For $remote_addr;" in self.nginx
        assert 'proxy_set_header Forwarded "";' in self.nginx

    def test_gateway(self) -> None:
        """The route leads to the Service of the manifest, with the same host and paths."""
        (route,) = documents("gateway.yaml")
        service = resource("Service")
        targets = [target for rule in route["spec"]["rules"] for target in rule["backendRefs"]]
        expected = {"name": service["metadata"]["name"], "port": service["spec"]["ports"][0]["port"]}
        assert all(target == expected for target in targets)
        paths = [match["path"]["value"] for rule in route["spec"]["rules"] for match in rule["matches"]]
        assert paths == [ServerSettings().http.path, "/.well-known/oauth-protected-resource"]
        assert route["spec"]["hostnames"] == ["mcp.example.com"]
        assert route["spec"]["rules"][0]["timeouts"] == {"request": "0s", "backendRequest": "0s"}


def test_an_image_on_top() -> None:
    """A derived image adds the files of a project, and its settings file names the container."""
    (stage,) = stages_of(PROJECT / "Dockerfile")
    copied = [one.text.split()[0] for one in stage if one.name == "COPY"]
    assert all((PROJECT / path).exists() for path in copied)
    target = tomllib.loads((PROJECT / "axolotl.toml").read_text())["target"]
    assert target.partition(".")[0] in copied


def test_images_have_names_only() -> None:
    """Images are named without a registry host, and our own with the version of the project."""
    dockerfiles = (ROOT / "Dockerfile", PROJECT / "Dockerfile")
    bases = [find(stage, "FROM").text.split()[0] for path in dockerfiles for stage in stages_of(path)]
    composed = [service["image"] for service in compose()["services"].values()]
    workers = resource("Deployment", "axolotl-worker")["spec"]["template"]["spec"]["containers"]
    images = [*bases, *composed, TestKubernetes.container["image"], *(one["image"] for one in workers)]
    assert not [image for image in images if "." in image.partition("/")[0].partition(":")[0]]
    ours = {image for image in images if image.startswith("axolotl-mcp:")}
    assert ours == {f"axolotl-mcp:{project_version()}"}
