"""What the page about proxies says of 403 and 421 is what the server answers; `python -m tests.docs` updates it."""

import inspect

from axolotl_server.console import routes as admission
from axolotl_server.settings.server import ServerSettings
from tests.docs.pages import read_page, region_of
from tests.docs.refusals import refusal_messages, refusals_table

PAGE = "docs/operate/behind-a-proxy.md"


async def test_refusals() -> None:
    """The table shows which Host and Origin are taken, and which are not."""
    assert region_of(read_page(PAGE), "refusals") == await refusals_table()


async def test_messages() -> None:
    """The texts by which people find the page are those that the server sends."""
    messages = await refusal_messages()
    assert messages.keys() == {403, 421}
    for message in messages.values():
        assert f"```text\n{message}\n```" in read_page(PAGE)
    console = "Forbidden: the console is for the machine that the server runs on; open it there"
    assert console in read_page(PAGE)
    assert console in inspect.getsource(admission)


def test_times() -> None:
    """The times in the page are the defaults."""
    settings = ServerSettings()
    page = read_page(PAGE)
    for name, value in {
        "http.keep_alive_seconds": settings.http.keep_alive_seconds,
        "limits.timeout_seconds": settings.limits.timeout_seconds,
        "limits.max_timeout_seconds": settings.limits.max_timeout_seconds,
        "limits.ask_timeout_seconds": settings.limits.ask_timeout_seconds,
    }.items():
        assert f"`{name}`, {value:g}" in page
