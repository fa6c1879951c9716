"""Requirements for servers that other machines can reach."""

import asyncio
import datetime
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from axolotl_core.errors import ConfigurationError
from axolotl_server import ServerHost
from axolotl_server.http.assembly import check_exposure, prepare, tls_context
from axolotl_server.http.server import connection_limits
from axolotl_server.http.server.serve import serve_http
from axolotl_server.settings.loading import load_settings
from axolotl_server.settings.transports import HttpSettings
from tests.support.peers.wire import connection, mirrored, raw_exchange, raw_request
from tests.support.servers.authenticated_server import DISCOVER, container, gated
from tests.support.servers.serving import PATIENCE_SECONDS

KEY = {"api_keys": {"ci": {"hash": f"sha256:{'0' * 64}"}}}


async def checked(http: Mapping[str, Any], auth: Mapping[str, Any]) -> None:
    async with ServerHost(container(), flags={"http": http, "auth": auth}) as host:
        prepare(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "mcp.example.com"])
async def test_strangers(host: str) -> None:
    """An unauthenticated server does not listen on a public address, and the error explains the options."""
    with pytest.raises(ConfigurationError) as error:
        await checked({"host": host}, {})
    for words in ("auth", "api_keys", "http.tls_client_ca", "127.0.0.1", "http.allow_unauthenticated = true"):
        assert words in str(error.value)


@pytest.mark.parametrize(
    ("http", "auth"),
    [
        ({"host": "127.0.0.1"}, {}),
        ({"host": "localhost"}, {}),
        ({"host": "::1"}, {}),
        ({"host": "0.0.0.0", "allow_unauthenticated": True}, {}),
        ({"host": "0.0.0.0"}, KEY),
    ],
)
async def test_no_strangers(http: Mapping[str, Any], auth: Mapping[str, Any]) -> None:
    """A server may listen if it is local, authenticated, or explicitly public."""
    await checked(http, auth)


async def test_the_address_that_was_taken_counts() -> None:
    """The actual address of a given socket is checked."""
    async with ServerHost(container()) as host:
        refused = pytest.raises(ConfigurationError, match=r"Anyone who can reach 0\.0\.0\.0")
        with socket.create_server(("0.0.0.0", 0)) as listener, refused:
            await serve_http(host, listener)
        check_exposure(host, "127.0.0.1")


def test_any_host() -> None:
    """A public address does not disable the check of the Host header."""
    with pytest.raises(ConfigurationError, match="allow_any_host = true"):
        load_settings(flags={"http": {"allowed_hosts": ["*"]}})
    load_settings(flags={"http": {"allowed_hosts": ["*"], "allow_any_host": True}})


@pytest.mark.parametrize(("name", "status"), [("any.name", 200), ("192.0.2.1:80", 200), ("no name", 421), ("", 421)])
async def test_any_host_is_served(name: str, status: int) -> None:
    """If all hosts are allowed, a Host header is still required."""
    async with gated({}, http={"allowed_hosts": ["*"], "allow_any_host": True}) as server:
        request = raw_request(DISCOVER, mirrored("server/discover").items(), host=name)
        assert (await raw_exchange(server.port, request)).status == status


class Papers:
    """A certificate authority and its certificates."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.authority = self._issue("authority", None)
        self.server = self._issue("server", self.authority)
        self.client = self._issue("client", self.authority)

    def path(self, name: str) -> str:
        """The path of a certificate with its key."""
        return str(self._directory / f"{name}.pem")

    def _issue(self, name: str, signer: tuple[x509.Certificate, Any] | None) -> tuple[x509.Certificate, Any]:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer_key = key if signer is None else signer[1]
        is_authority = signer is None
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=is_authority, crl_sign=is_authority, key_encipherment=False,
            content_commitment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
            decipher_only=False,
        )  # fmt: skip
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if signer is None else signer[0].subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        )
        certificate = builder.sign(issuer_key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        Path(self.path(name)).write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
        return certificate, key


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    """Certificates of a server and a client."""
    return Papers(tmp_path_factory.mktemp("papers"))


@asynccontextmanager
async def encrypted(http: Mapping[str, Any]) -> AsyncIterator[int]:
    """Serve with TLS, and give the port."""
    async with ServerHost(container(), flags={"http": http}) as host:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        running = asyncio.ensure_future(serve_http(host, listener))
        try:
            yield listener.getsockname()[1]
        finally:
            host.stop_signal.set()
            await running


async def asked(port: int, papers: Papers, client: str | None) -> httpx2.Response:
    """Send one request with TLS."""
    context = ssl.create_default_context(cafile=papers.path("authority"))
    if client is not None:
        context.load_cert_chain(papers.path(client))
    async with httpx2.AsyncClient(verify=context, trust_env=False) as http_client:
        url = f"https://127.0.0.1:{port}/mcp"
        return await http_client.post(url, content=DISCOVER, headers=mirrored("server/discover"))


async def exchange(papers: Papers, http: Mapping[str, Any], client: str | None) -> httpx2.Response:
    """Serve one request with TLS."""
    async with encrypted(http) as port:
        return await asked(port, papers, client)


async def test_tls(papers: Papers) -> None:
    """With a certificate the server uses TLS."""
    reply = await exchange(papers, {"tls_certificate": papers.path("server")}, None)
    assert reply.status_code == 200
    assert reply.json()["result"]["supportedVersions"]


@pytest.mark.parametrize(("maximum", "counts_addresses"), [(8, False), (80, True)])
async def test_handshakes_count_as_connections(
    papers: Papers, maximum: int, counts_addresses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that do not finish their handshake cannot take more file descriptors than connections may have."""
    if counts_addresses:
        monkeypatch.setattr(connection_limits, "share_of_address", lambda address: (address,))
    async with (
        encrypted({"tls_certificate": papers.path("server"), "max_connections": maximum}) as port,
        AsyncExitStack() as stack,
    ):
        silent = [await stack.enter_async_context(connection(port)) for _ in range(20)]
        reading = [asyncio.ensure_future(reader.read()) for reader, _ in silent]
        async with asyncio.timeout(PATIENCE_SECONDS):
            for closed in reading[9:]:
                with suppress(ConnectionResetError):
                    assert await closed == b""
        assert not any(open_.done() for open_ in reading[:9])
        for _, writer in silent:
            writer.close()
        await asyncio.wait(reading)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                with suppress(httpx2.TransportError):  # until the server has noticed that they left
                    assert (await asked(port, papers, None)).status_code == 200
                    return


async def test_certificates_of_clients(papers: Papers) -> None:
    """If client certificates are required, clients without a valid one are rejected."""
    http = {"tls_certificate": papers.path("server"), "tls_client_ca": papers.path("authority")}
    assert (await exchange(papers, http, "client")).status_code == 200
    with pytest.raises(httpx2.TransportError):
        await exchange(papers, http, None)


async def test_certificates_of_clients_are_enough(papers: Papers) -> None:
    """Required client certificates count as authentication for public addresses."""
    http = {"tls_certificate": papers.path("server"), "tls_client_ca": papers.path("authority"), "host": "0.0.0.0"}
    await checked(http, {})


@pytest.mark.parametrize(
    ("http", "finding"),
    [
        ({"tls_certificate": "/nowhere.pem"}, "tls_certificate and tls_key: /nowhere.pem cannot be used: No such file"),
        ({"tls_certificate": __file__}, "tls_certificate and tls_key"),
    ],
)
def test_invalid_certificates(http: Mapping[str, Any], finding: str) -> None:
    """The server does not start with an invalid certificate."""
    with pytest.raises(ConfigurationError, match=finding):
        tls_context(HttpSettings.model_validate(http))


def test_a_locked_key(papers: Papers, tmp_path: Path) -> None:
    """An encrypted key needs a configured password; there is no prompt."""
    _, key = papers.server
    locked = tmp_path / "locked.pem"
    form = serialization.BestAvailableEncryption(b"open sesame")
    locked.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, form))
    paths = {"tls_certificate": papers.path("server"), "tls_key": str(locked)}
    for password in (None, "wrong"):
        with pytest.raises(ConfigurationError, match="cannot be used"):
            tls_context(HttpSettings.model_validate({**paths, "tls_key_password": password}))
    assert tls_context(HttpSettings.model_validate({**paths, "tls_key_password": "open sesame"})) is not None


@pytest.mark.parametrize("name", ["tls_key", "tls_client_ca"])
def test_tls_needs_a_certificate(name: str) -> None:
    """TLS settings without a certificate are rejected."""
    with pytest.raises(ConfigurationError, match=f"{name} needs tls_certificate"):
        load_settings(flags={"http": {name: "/x.pem"}})
