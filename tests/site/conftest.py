"""The documentation site, built once and served on localhost."""

import os
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.browser.conftest import browser  # noqa: F401
from tests.site.building import build


@pytest.fixture(scope="session")
def site() -> Path:
    """The built site. `make test` skips these tests; `make site` runs them."""
    if not os.environ.get("SITE"):
        pytest.skip("building the site takes a while: run `make site`")
    return build()


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The address of the served site."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""
