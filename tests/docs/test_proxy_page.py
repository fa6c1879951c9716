"""The 403 and 421 responses on the page about reverse proxies."""

import inspect

from axolotl_server.extensions.console import routes as admission
from tests.support.docs.pages import read_page
from tests.support.docs.refusals import refusal_messages

PAGE = "docs/operate/behind-a-proxy.md"


async def test_messages() -> None:
    """The page quotes the messages that the server sends."""
    messages = await refusal_messages()
    assert messages.keys() == {400, 403, 421}
    for message in messages.values():
        assert f"```text\n{message}\n```" in read_page(PAGE)
    console = "Forbidden: open the console on the machine that runs the server"
    assert console in read_page(PAGE)
    assert console in inspect.getsource(admission)
