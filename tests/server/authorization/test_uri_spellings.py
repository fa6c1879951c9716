"""A denied resource or template cannot be read through a wider template, in any spelling of its URI."""

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import create_model

from axolotl_core import Context, IResource, IResourceTemplate
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_core.resources.uri_template import UriTemplate
from axolotl_server import ServerHost
from tests.support.core.uri_expansion import expand
from tests.support.servers.restricted_servers import ROOT, Speaker, offering

DENIED = {
    "rules": [
        {"name": "admins", "effect": "allow", "who": {"roles": ["admin"]}},
        {"name": "open", "effect": "allow", "what": {"tags": ["open"]}},
    ]
}


class Fixed(IResource):
    name = "fixed"

    def __init__(self, uri: str) -> None:
        self.uri = uri

    async def read(self, context: Context) -> str:
        return f"fixed {context.uri}"


def template(text: str, *, wide: bool = False, unscreened: bool = False) -> IResourceTemplate[Any]:
    """Make a template whose contents show what was read."""
    form = UriTemplate(text)
    fields: dict[str, Any] = {
        name: ((list[str], ()) if name in form.exploded else (str, "")) for name in form.variables
    }

    class Served(IResourceTemplate[create_model("Served", **fields)]):  # type: ignore[misc]
        name = "wide" if wide else "narrow"
        uri_template = text
        tags = frozenset({"open"} if wide else ())

        async def read(self, variables: Any, context: Context) -> str:
            return f"{self.name} {variables.model_dump_json()}"

    served = Served()
    if unscreened:
        served.unscreened = frozenset(form.variables)
    return served


class Reader:
    """Reads resources as a guest, who may use wide templates, and as an admin, who may use everything."""

    def __init__(self, host: ServerHost) -> None:
        self._speakers = {name: Speaker(host, one) for name, one in (("guest", ANONYMOUS), ("admin", ROOT))}

    async def text(self, uri: str, who: str = "guest") -> str | None:
        reply = await self._speakers[who].ask("resources/read", {"uri": uri})
        return reply["result"]["contents"][0]["text"] if "result" in reply else None

    async def close(self) -> None:
        for speaker in self._speakers.values():
            await speaker.close()


def serving(*resources: Any) -> ServerHost:
    return ServerHost(offering(resources=resources), flags={"authorization": DENIED})


@pytest.mark.parametrize(
    "uri",
    [
        pytest.param("files://secret/plan.txt", id="plain"),
        pytest.param("files://secret%2Fplan.txt", id="encoded-slash"),
        pytest.param("files://secret%2fplan.txt", id="lowercase-digits"),
        pytest.param("files://secret%252Fplan.txt", id="encoded-twice"),
        pytest.param("files://secret%25%32%46plan.txt", id="encoded-digits"),
        pytest.param("files://secret//plan.txt", id="two-slashes"),
        pytest.param("files:///secret/plan.txt", id="three-slashes"),
        pytest.param("files://secret/plan.txt/", id="slash-at-the-end"),
        pytest.param("files://secret/plan.txt?", id="query"),
        pytest.param("files://secret/plan.txt?x=1", id="unknown-parameter"),
        pytest.param("files://SECRET/plan.txt", id="case-of-the-host"),
        pytest.param("FILES://secret%2Fplan.txt", id="case-of-the-scheme"),
        pytest.param("files://%73ecret/plan.txt", id="encoded-letter"),
        pytest.param("files://open/../secret/plan.txt", id="parent"),
        pytest.param("files://open/%2e%2e/secret/plan.txt", id="encoded-parent"),
        pytest.param("files://open%2F..%2Fsecret%2Fplan.txt", id="encoded-path"),
        pytest.param("files://./secret/./plan.txt", id="same-directory"),
        pytest.param("files://secret%5Cplan.txt", id="backslash"),
        pytest.param("files://plans/merger.txt", id="fixed"),
        pytest.param("files://plans/%6Derger.txt", id="fixed-encoded-letter"),
        pytest.param("files://plans/merger%2Etxt", id="fixed-encoded-dot"),
        pytest.param("files://plans%2Fmerger.txt", id="fixed-encoded-slash"),
        pytest.param("files://plans//merger.txt", id="fixed-two-slashes"),
        pytest.param("files://plans/merger.txt/", id="fixed-slash-at-the-end"),
        pytest.param("files://Plans/merger.txt", id="fixed-case-of-the-host"),
        pytest.param("files://plans/merger.txt?", id="fixed-empty-query"),
        pytest.param("files://plans/merger.txt?x", id="fixed-query"),
        pytest.param("files://plans/merger.txt%3Fx=1", id="fixed-encoded-query"),
        pytest.param("files://plans/merger.txt?x/../../y", id="fixed-query-with-parents"),
        pytest.param("files://plans/merger.txt#x", id="fixed-fragment"),
        pytest.param("files://plans/merger.txt%2523x", id="fixed-fragment-encoded-twice"),
        pytest.param("files://plans/merger.txt;x", id="fixed-parameters"),
        pytest.param("files://plans;v=1//merger.txt;x?y#z", id="fixed-parameters-of-all-kinds"),
        pytest.param("files://sums?year=1", id="fixed-with-query"),
        pytest.param("files://sums?year=1&x", id="fixed-with-longer-query"),
        pytest.param("files://sums?year=1#x", id="fixed-with-query-and-fragment"),
        pytest.param("files://deep/a/b", id="below"),
        pytest.param("files://deep%2Fa%2Fb", id="below-encoded"),
    ],
)
@pytest.mark.parametrize("unscreened", [True, False])
async def test_denied(uri: str, unscreened: bool) -> None:
    """What is denied looks as if it did not exist."""
    wide = template("files://{+path}", wide=True, unscreened=unscreened)
    narrow = [template("files://secret/{name}"), template("files://deep/{+path}"), Fixed("files://plans/merger.txt")]
    async with serving(wide, Fixed("files://sums?year=1"), *narrow) as host:
        reader = Reader(host)
        assert await reader.text(uri) is None
        await reader.close()


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        pytest.param("files://open/readme.txt", 'wide {"path":"open/readme.txt"}', id="plain"),
        pytest.param("files://open//readme.txt", 'wide {"path":"open//readme.txt"}', id="two-slashes"),
        pytest.param("files://open/docs/", 'wide {"path":"open/docs/"}', id="slash-at-the-end"),
        pytest.param("files://open/a%20%28b%29.txt", 'wide {"path":"open/a (b).txt"}', id="encoded-characters"),
        pytest.param("files://Open/R%26D?x=1", 'wide {"path":"Open/R&D?x=1"}', id="delimiters"),
        pytest.param("files://secret/a/b", 'wide {"path":"secret/a/b"}', id="more-segments-than-the-narrow-one"),
        pytest.param("files://secrets%2Fplan", 'wide {"path":"secrets/plan"}', id="other-directory"),
        pytest.param("FILES://%6Fpen/x", 'wide {"path":"open/x"}', id="equivalent"),
        pytest.param("files://plans/merger.txt2?x", 'wide {"path":"plans/merger.txt2?x"}', id="query-of-another-file"),
        pytest.param("files://plans/merger.txt?page=2", 'own {"page":"2"}', id="template-for-the-query-of-a-resource"),
    ],
)
async def test_what_the_wide_template_serves(uri: str, text: str) -> None:
    """Other URIs are served as before, in any spelling."""
    wide = template("files://{+path}", wide=True)
    own = template("files://plans/merger.txt{?page}", wide=True)
    own.name = "own"
    async with serving(wide, own, template("files://secret/{name}"), Fixed("files://plans/merger.txt")) as host:
        reader = Reader(host)
        assert await reader.text(uri) == text
        await reader.close()


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        pytest.param("docs://plan", "fixed docs://plan", id="plain"),
        pytest.param("DOCS://%70lan", "fixed docs://plan", id="equivalent"),
        pytest.param("docs://caf%c3%a9", "fixed docs://café", id="encoded"),
        pytest.param("docs://a%2Fb/x", 'narrow {"id":"a/b","tab":"x"}', id="slash-in-a-value"),
        pytest.param("docs://a%2Fb", None, id="value-that-is-two-segments-of-another-template"),
    ],
)
async def test_equivalent_uris(uri: str, text: str | None) -> None:
    """A URI is found in every equivalent spelling. A value may contain an encoded slash if nothing else claims it."""
    resources = (Fixed("docs://plan"), Fixed("docs://café"), template("docs://{id}"), template("docs://{id}/{tab}"))
    async with serving(*resources) as host:
        reader = Reader(host)
        assert await reader.text(uri, "admin") == text
        await reader.close()


NARROW = [
    "files://secret/{name}",
    "files://Secret/{name}",
    "files://secret/{+path}",
    "files://{name}/secret.txt",
    "files://a/{x}/b/{y}",
    "files://secret{/x,y}",
    "files://secret{?x,y}",
    "files://secret/x{;y}",
    "files://{x}.key",
    "files://secret//{name}/",
    "files://secret/plan.txt",
    "files://Secret/plan.txt/",
    "files://caf%c3%a9/(plan)?x=1",
]
WIDE = [
    "files://{+path}",
    "files://{path}",
    "files://{+path}{?q}",
    "files://{a}/{+b}",
    "files://{a}/{b}",
    "files:{+all}",
]

values = st.text(st.sampled_from("ab1.-_~é ?#&=;,+:@()%/"), min_size=1, max_size=6)


SLASHES = st.sampled_from(["/", "/", "//", "/./", "/x/../", "/%2E/", "%2F", "%2f", "/%2F", "%5C", "%252F"])
BEGINNINGS = st.sampled_from(["files://", "FILES://", "files:///", "files://./", "files://x/../"])
ENDINGS = st.sampled_from(["", "/", "//", "/.", "%2F"])
encoded = st.sampled_from([False] * 6 + [True])


def spelled(uri: str, draw: Any) -> str:
    """Write a URI in another way."""
    host, slash, path = uri.removeprefix("files://").partition("/")
    if draw(encoded) and "%" not in host:
        host = host.swapcase()
    written: list[str] = []
    for character in host + slash + path:
        if character == "/":
            written.append(draw(SLASHES))
        elif character != "%" and draw(encoded):
            octets = "".join(f"%{byte:02{draw(st.sampled_from('xX'))}}" for byte in character.encode())
            written.append(octets.replace("%", "%25") if draw(encoded) else octets)
        else:
            written.append(character)
    beginning, ending = draw(BEGINNINGS), draw(ENDINGS)
    return f"{beginning}{''.join(written)}{ending}"


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(
    st.data(),
    st.sampled_from(NARROW),
    st.lists(st.sampled_from(WIDE), min_size=1, max_size=3, unique=True),
    st.booleans(),
)
async def test_no_spelling_reaches_a_denied_resource(
    data: st.DataObject, narrow: str, wide: list[str], unscreened: bool
) -> None:
    """If the admin reads a URI from the denied binding, the guest reads no spelling of it from a wider template."""
    names = UriTemplate(narrow).variables if "{" in narrow else ()
    chosen = {name: data.draw(values) for name in names}
    uri = expand(UriTemplate(narrow), chosen) if names else narrow
    denied = template(narrow) if names else Fixed(narrow)
    async with serving(denied, *(template(one, wide=True, unscreened=unscreened) for one in wide)) as host:
        reader = Reader(host)
        try:
            shown = await reader.text(uri, "admin")
            assume(shown is not None and not shown.startswith("wide"))
            for _ in range(12):
                other = spelled(uri, data.draw)
                assert await reader.text(other) is None, (uri, other)
        finally:
            await reader.close()
