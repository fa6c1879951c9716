"""URI templates: expansion and matching."""

import subprocess
import sys

import pytest

from axolotl_core.errors import ConfigurationError
from axolotl_core.resources.uri_matching import UriValues
from axolotl_core.resources.uri_template import UriTemplate, has_variables
from tests.support.core.uri_expansion import UriValue, expand

LIST = ["red", "green", "blue"]
RFC: dict[str, UriValue] = {
    "count": ["one", "two", "three"],
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": LIST,
    "v": "6",
    "x": "1024",
    "y": "768",
    "empty": "",
    "undef": None,
}

# The examples of RFC 6570, section 3.2, behind a scheme; the third column is what is found where that is not what was
# given: a prefix cuts, a list that is not exploded is a text, an absent variable that must be there is empty.
EXAMPLES: list[tuple[str, str, UriValues | None]] = [
    ("{var}", "value", None),
    ("{hello}", "Hello%20World%21", None),
    ("{half}", "50%25", None),
    ("O{empty}X", "OX", None),
    ("O{undef}X", "OX", {"undef": ""}),
    ("{x,y}", "1024,768", None),
    ("{x,hello,y}", "1024,Hello%20World%21,768", None),
    ("?{x,empty}", "?1024,", None),
    ("?{x,undef}", "?1024", {"x": "1024"}),
    ("?{undef,y}", "?768", {"undef": "768"}),
    ("{var:3}", "val", {"var": "val"}),
    ("{var:30}", "value", None),
    ("{list}", "red,green,blue", {"list": "red,green,blue"}),
    ("{list*}", "red,green,blue", None),
    ("{+var}", "value", None),
    ("{+hello}", "Hello%20World!", None),
    ("{+half}", "50%25", None),
    ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex", None),
    ("{+base}index", "http://example.com/home/index", None),
    ("O{+empty}X", "OX", None),
    ("{+path}/here", "/foo/bar/here", None),
    ("here?ref={+path}", "here?ref=/foo/bar", None),
    ("up{+path}{var}/here", "up/foo/barvalue/here", {"path": "/foo/barvalue", "var": ""}),
    ("{+x,hello,y}", "1024,Hello%20World!,768", None),
    ("{+path,x}/here", "/foo/bar,1024/here", None),
    ("{+path:6}/here", "/foo/b/here", {"path": "/foo/b"}),
    ("{+list}", "red,green,blue", {"list": "red,green,blue"}),
    ("{+list*}", "red,green,blue", None),
    ("{#var}", "#value", None),
    ("{#hello}", "#Hello%20World!", None),
    ("{#half}", "#50%25", None),
    ("foo{#empty}", "foo#", None),
    ("foo{#undef}", "foo", {}),
    ("{#x,hello,y}", "#1024,Hello%20World!,768", None),
    ("{#path,x}/here", "#/foo/bar,1024/here", None),
    ("{#path:6}/here", "#/foo/b/here", {"path": "/foo/b"}),
    ("{#list*}", "#red,green,blue", None),
    ("{.who}", ".fred", None),
    ("{.half,who}", ".50%25.fred", None),
    ("www{.list*}", "www.red.green.blue", None),
    ("X{.var}", "X.value", None),
    ("X{.empty}", "X.", None),
    ("X{.undef}", "X", {}),
    ("X{.var:3}", "X.val", {"var": "val"}),
    ("X{.list}", "X.red,green,blue", {"list": "red,green,blue"}),
    ("{/who}", "/fred", None),
    ("{/half,who}", "/50%25/fred", None),
    ("{/who,dub}", "/fred/me%2Ftoo", None),
    ("{/var,empty}", "/value/", None),
    ("{/var,undef}", "/value", {"var": "value"}),
    ("{/var,x}/here", "/value/1024/here", None),
    ("{/var:1,x}", "/v/1024", {"var": "v", "x": "1024"}),
    ("{/list}", "/red,green,blue", {"list": "red,green,blue"}),
    ("{/list*}", "/red/green/blue", None),
    ("{;who}", ";who=fred", None),
    ("{;half}", ";half=50%25", None),
    ("{;empty}", ";empty", None),
    ("{;v,empty,who}", ";v=6;empty;who=fred", None),
    ("{;v,undef,who}", ";v=6;who=fred", {"v": "6", "who": "fred"}),
    ("{;x,y}", ";x=1024;y=768", None),
    ("{;hello:5}", ";hello=Hello", {"hello": "Hello"}),
    ("{;list}", ";list=red,green,blue", {"list": "red,green,blue"}),
    ("{;list*}", ";list=red;list=green;list=blue", None),
    ("{?who}", "?who=fred", None),
    ("{?half}", "?half=50%25", None),
    ("{?x,y,empty}", "?x=1024&y=768&empty=", None),
    ("{?x,y,undef}", "?x=1024&y=768", {"x": "1024", "y": "768"}),
    ("{?var:3}", "?var=val", {"var": "val"}),
    ("{?list}", "?list=red,green,blue", {"list": "red,green,blue"}),
    ("{?list*}", "?list=red&list=green&list=blue", None),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024", None),
    ("{&x,y,empty}", "&x=1024&y=768&empty=", None),
    ("{&var:3}", "&var=val", {"var": "val"}),
    ("{&list*}", "&list=red&list=green&list=blue", None),
    ("/{count}", "/one,two,three", {"count": "one,two,three"}),
    ("{/count*}", "/one/two/three", None),
    ("{?count*}", "?count=one&count=two&count=three", None),
]


@pytest.mark.parametrize(("template", "uri", "found"), EXAMPLES, ids=[template for template, _, _ in EXAMPLES])
def test_the_examples_of_the_standard_work_both_ways(template: str, uri: str, found: UriValues | None) -> None:
    """Each example of the standard expands as specified, and matches its expansion."""
    subject = UriTemplate(f"x:{template}")
    given_values = {name: RFC[name] for name in subject.variables}
    assert expand(subject, RFC) == f"x:{uri}"
    assert subject.match(f"x:{uri}") == (given_values if found is None else found)


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        pytest.param("u://{id}/p", "u://%41/p", {"id": "A"}, id="needless-encoding"),
        pytest.param("u://{id}/p", "u://a%2fb/p", {"id": "a/b"}, id="small-hexadecimals"),
        pytest.param("u://{id}/p", "u://a%252Fb/p", {"id": "a%2Fb"}, id="decoded-once"),
        pytest.param("u://{id}/p", "u://a+b/p", {"id": "a+b"}, id="plus-is-no-space"),
        pytest.param("u://{id}/p", "u://bob@example.com:1/p", {"id": "bob@example.com:1"}, id="plain-delimiters"),
        pytest.param("u://{id}/p", "u://grün weiß/p", {"id": "grün weiß"}, id="not-encoded"),
        pytest.param("u://{id}/p", "u://gr%C3%BCn/p", {"id": "grün"}, id="encoded"),
        pytest.param("u://{id}/p", "u://a/b/p", None, id="slash"),
        pytest.param("u://{id}/p", "u://a?/p", None, id="question-mark"),
        pytest.param("u://{id}/p", "u://a", None, id="too-short"),
        pytest.param("u://{id}/p", "u://a/p/", None, id="too-long"),
        pytest.param("u://{id}/p", "U://a/p", {"id": "a"}, id="other-case-of-the-scheme"),
        pytest.param("u://{id}/p", "u://%FF/p", None, id="not-utf-8"),
        pytest.param("u://{id}/p", "u://%C0%AE/p", None, id="overlong-utf-8"),
        pytest.param("u://{id}/p", "u://%ED%A0%80/p", None, id="encoded-surrogate"),
        pytest.param("u://{id}/p", "u://\ud800/p", None, id="surrogate"),
        pytest.param("u://{id}/p", "u://5%/p", None, id="percent-alone"),
        pytest.param("u://{id}/p", "u://%%34%31/p", None, id="percent-made-of-parts"),
        pytest.param("u://{id}/p", "u://a\0/p", None, id="control"),
        pytest.param("u://{id}/p", "u://a\\b/p", None, id="backslash"),
        pytest.param("u://{id}/p", "u://{id}/p", None, id="the-template-itself"),
        pytest.param("u://größe/%7e%2f/{id}", "u://gr%C3%B6%c3%9fe/~%2F/1", {"id": "1"}, id="literals-normalised"),
        pytest.param("u://a.b/{id}", "u://axb/1", None, id="literals-are-no-patterns"),
        pytest.param("u://{a}.{b}", "u://x.tar.gz", {"a": "x.tar", "b": "gz"}, id="earlier-takes-more"),
        pytest.param("u://{a}{.b}", "u://x.tar.gz", {"a": "x.tar", "b": "gz"}, id="optional-is-found"),
        pytest.param("u://{a}{.b}{.c}", "u://x.tar.gz", {"a": "x", "b": "tar", "c": "gz"}, id="most-are-found"),
        pytest.param("u://{a}{.b}", "u://x", {"a": "x"}, id="optional-is-absent"),
        pytest.param("u://{a}{b}", "u://xy", {"a": "xy", "b": ""}, id="adjacent"),
        pytest.param("u://{+p}.{a}", "u://x.y/z.w", {"p": "x.y/z", "a": "w"}, id="wide-then-narrow"),
        pytest.param("u://{a,b*}", "u://1,2,3", {"a": "1", "b": ["2", "3"]}, id="text-before-list"),
        pytest.param("u://{a,b}", "u://1,2,3", None, id="too-many-commas"),
        pytest.param("u://{+a,b}", "u://1,2,3", {"a": "1,2", "b": "3"}, id="reserved-commas"),
        pytest.param("u://{+p}{;v}", "u://a/b;v=1", {"p": "a/b", "v": "1"}, id="reserved-ends-at-parameters"),
        pytest.param("u://{+p}/edit", "u://a/edit/b/edit", {"p": "a/edit/b"}, id="reserved-before-literal"),
        pytest.param("u://{+p}{?q}{#f}", "u://a/b?q=1?2#x?y", {"p": "a/b", "q": "1?2", "f": "x?y"}, id="whole"),
        pytest.param("u://{+p}{?q}", "u://a?other=1", None, id="reserved-ends-at-the-query"),
        pytest.param("u://{+p}", "u://http://a/?b=1#c", {"p": "http://a/?b=1#c"}, id="reserved-at-the-end"),
        pytest.param("u://{+p}", "u://%2541", {"p": "%41"}, id="reserved-decoded-once"),
        pytest.param("u://?q={a}", "u://?q=x&b=1", None, id="ampersand-in-a-query"),
        pytest.param("u://{a}", "u://AT&T", {"a": "AT&T"}, id="ampersand-elsewhere"),
        pytest.param("u://x{/p*}/edit", "u://x/a/b/edit", {"p": ["a", "b"]}, id="parts-before-literal"),
        pytest.param("u://x{/p*}/edit", "u://x/edit", {}, id="no-parts"),
        pytest.param("u://x{/p*}", "u://x/a%2Fb/c", {"p": ["a/b", "c"]}, id="encoded-slash-in-a-part"),
        pytest.param("u://x{/p*}", "u://x//a", {"p": ["", "a"]}, id="empty-part"),
        pytest.param("u://{p*}", "u://", {"p": []}, id="empty-list"),
        pytest.param("u://x{/a,b}{/c}", "u://x/1/2/3", {"a": "1", "b": "2", "c": "3"}, id="paths-in-a-row"),
        pytest.param("u://x{/a,b}{/c}", "u://x/1/2/3/4", None, id="too-many-segments"),
        pytest.param("u://x{#a,b}", "u://x,2", None, id="second-of-a-fragment-alone"),
        pytest.param("u://{a:2}", "u://%C3%BC%C3%BC", {"a": "üü"}, id="prefix-counts-characters"),
        pytest.param("u://{a:2}", "u://abc", None, id="longer-than-the-prefix"),
    ],
)
def test_values_are_found(template: str, uri: str, values: UriValues | None) -> None:
    """Equivalent URIs match with the same values; others do not match."""
    assert UriTemplate(template).match(uri) == values


@pytest.mark.parametrize(
    ("query", "values"),
    [
        pytest.param("", {}, id="absent"),
        pytest.param("?q=1&n=2", {"q": "1", "n": "2"}, id="in-order"),
        pytest.param("?n=2&q=1", {"q": "1", "n": "2"}, id="out-of-order"),
        pytest.param("?n=2", {"n": "2"}, id="one-of-them"),
        pytest.param("?t=a&q=1&t=b", {"q": "1", "t": ["a", "b"]}, id="list"),
        pytest.param("?t=a", {"t": ["a"]}, id="list-of-one"),
        pytest.param("?%71=1", {"q": "1"}, id="encoded-name"),
        pytest.param("?q=a%26n%3D2", {"q": "a&n=2"}, id="encoded-delimiters"),
        pytest.param("?q=a=b", {"q": "a=b"}, id="equals-sign"),
        pytest.param("?q=", {"q": ""}, id="empty"),
        pytest.param("?q", {"q": ""}, id="without-equals-sign"),
        pytest.param("?q=1&other=2", None, id="unknown"),
        pytest.param("?Q=1", None, id="other-case"),
        pytest.param("?q=1&q=2", None, id="twice"),
        pytest.param("?", None, id="question-mark-alone"),
        pytest.param("?q=1&", None, id="ampersand-at-the-end"),
        pytest.param("?q=%FF", None, id="not-utf-8"),
        pytest.param("#q=1", None, id="fragment"),
        pytest.param("&q=1", None, id="ampersand-first"),
    ],
)
@pytest.mark.parametrize("template", ["s://x{?q,n,t*}", "s://x{?q}{&n,t*}"])
def test_query_variables_are_optional_and_in_any_order(template: str, query: str, values: UriValues | None) -> None:
    """Parameters match by name; unknown or repeated ones do not match."""
    assert UriTemplate(template).match(f"s://x{query}") == values


def test_path_parameters_are_in_any_order_too() -> None:
    """Parameters within a path follow the rules of a query."""
    subject = UriTemplate("s://x{;a}{;b*}/y")
    assert subject.match("s://x;b=1;a;b=2/y") == {"a": "", "b": ["1", "2"]}
    assert subject.match("s://x/y") == {}
    assert subject.match("s://x;c=1/y") is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("u://{id", "'{' is unbalanced", id="not-closed"),
        pytest.param("u://id}", "'}' is unbalanced", id="not-opened"),
        pytest.param("u://{{id}}", "'{' is unbalanced", id="nested"),
        pytest.param("u://{}", "{} has '' instead of the name of a variable", id="empty"),
        pytest.param("u://{?}", "{?} has '' instead of", id="operator-alone"),
        pytest.param("u://{a,}", "{a,} has '' instead of", id="comma-at-the-end"),
        pytest.param("u://{a b}", "'a b' instead of", id="space"),
        pytest.param("u://{a.}", "'a.' instead of", id="dot-at-the-end"),
        pytest.param("u://{größe}", "'größe' instead of", id="not-ascii"),
        pytest.param("u://{a=1}", "'a=1' instead of", id="default"),
        pytest.param("u://{a:0}", "'a:0' instead of", id="prefix-of-zero"),
        pytest.param("u://{a:10000}", "'a:10000' instead of", id="prefix-too-long"),
        pytest.param("u://{a:x}", "'a:x' instead of", id="prefix-no-number"),
        pytest.param("u://{a:1*}", "'a:1*' instead of", id="two-modifiers"),
        pytest.param("u://{=a}", "{=a} has the unknown operator '='", id="reserved-operator"),
        pytest.param("u://{-a}", "{-a} has the unknown operator '-'", id="unknown-operator"),
        pytest.param("u://{ a}", "{ a} has the unknown operator ' '", id="space-first"),
        pytest.param("u://{a}/{a}", "it contains the variable 'a' twice", id="twice"),
        pytest.param("u://{a,b*,a:3}", "it contains the variable 'a' twice", id="twice-in-one"),
        pytest.param("u://5%/{a}", "'%' must be percent-encoded", id="percent-alone"),
        pytest.param("u://a\\{b}", "'\\\\' must be percent-encoded", id="backslash"),
        pytest.param("u://a\n{b}", "'\\n' must be percent-encoded", id="control"),
        pytest.param("{a}", "it must begin with a literal scheme", id="anything"),
        pytest.param("{+a}://x", "it must begin with a literal scheme", id="variable-scheme"),
        pytest.param("u{a}://x", "it must begin with a literal scheme", id="half-a-scheme"),
        pytest.param("/u/{a}", "it must begin with a literal scheme", id="path"),
        pytest.param("", "it must begin with a literal scheme", id="nothing"),
    ],
)
def test_malformed_templates_are_refused(text: str, fault: str) -> None:
    """An invalid template is refused with an explanation."""
    with pytest.raises(ConfigurationError) as caught:
        UriTemplate(text)
    assert str(caught.value).startswith(f"URI template {text!r}: ")
    assert fault in str(caught.value)


def test_a_template_describes_itself() -> None:
    """Its text, its variables in order, and which of them may be absent or are lists."""
    subject = UriTemplate("u://{b}/{+a,c}{/d*}{.e:3}{?f,g*}")
    assert subject.text == "u://{b}/{+a,c}{/d*}{.e:3}{?f,g*}"
    assert subject.variables == ("b", "a", "c", "d", "e", "f", "g")
    assert subject.optional == {"c", "d", "e", "f", "g"}
    assert subject.exploded == {"d", "g"}
    assert repr(subject) == "UriTemplate('u://{b}/{+a,c}{/d*}{.e:3}{?f,g*}')"


def test_a_template_without_variables_is_one_uri() -> None:
    """A template without variables matches only itself."""
    subject = UriTemplate("config://app")
    assert (subject.variables, expand(subject, {"x": "1"})) == ((), "config://app")
    assert (subject.match("config://app"), subject.match("config://apps")) == ({}, None)


@pytest.mark.parametrize(("text", "expected"), [("a://b", False), ("a://{b}", True), ("a://{b", True), ("a}", True)])
def test_braces_make_a_template(text: str, expected: bool) -> None:
    """A text with a brace is a template, even if it is malformed."""
    assert has_variables(text) is expected


@pytest.mark.parametrize(
    ("template", "values", "uri"),
    [
        pytest.param("u://x{?n}", {"n": 0}, "u://x?n=0", id="zero"),
        pytest.param("u://{n:2}", {"n": 123}, "u://12", id="prefix-of-a-number"),
        pytest.param("u://{n}", {"n": 1.5}, "u://1.5", id="float"),
        pytest.param("u://x{;t}", {"t": []}, "u://x", id="empty-list"),
        pytest.param("u://x{#t*}", {"t": ()}, "u://x", id="empty-tuple"),
        pytest.param("u://x{/t*}", {"t": ("a", "b")}, "u://x/a/b", id="tuple"),
        pytest.param("u://{+p}", {"p": "a b%20c%"}, "u://a%20b%20c%25", id="space-beside-a-triplet"),
        pytest.param("u://{+p*}", {"p": ["a b%20c", "d"]}, "u://a%20b%20c,d", id="space-in-a-list"),
        pytest.param("u://{+p:3}", {"p": "a b c"}, "u://a%20b", id="prefix-before-encoding"),
        pytest.param("u://größe/{a}", {"a": "ü"}, "u://gr%C3%B6%C3%9Fe/%C3%BC", id="literal-encoded"),
        pytest.param("u://{a}{?b}", {"a": "1", "c": "2"}, "u://1", id="unknown-value"),
    ],
)
def test_values_are_written(template: str, values: dict[str, UriValue], uri: str) -> None:
    """Numbers, lists and texts of all kinds make a valid URI."""
    assert expand(UriTemplate(template), values) == uri


def test_a_value_that_utf_8_cannot_encode_is_refused() -> None:
    """A lone surrogate cannot be encoded."""
    with pytest.raises(ValueError, match="surrogates not allowed"):
        expand(UriTemplate("u://{a}"), {"a": "\ud800"})


def test_the_most_specific_template_sorts_first() -> None:
    """More literal characters win, then fewer variables, then fewer that may hold slashes, then the order given."""
    templates = ["f://{+a}", "f://{/a*}", "f://{a}", "f://{b}", "f://{a}{b}", "f://x/{+a}", "f://x/{a}.txt"]
    ordered = sorted(map(UriTemplate, templates), key=lambda template: template.specificity)
    assert [template.text for template in ordered] == [
        "f://x/{a}.txt", "f://x/{+a}", "f://{a}", "f://{b}", "f://{+a}", "f://{/a*}", "f://{a}{b}",
    ]  # fmt: skip


def test_a_server_without_templates_does_not_import_the_library() -> None:
    """The library is imported with the first template."""
    script = (
        "import sys, axolotl_core.resources.uri_template as subject; assert 'uritemplate' not in sys.modules;"
        "subject.UriTemplate('a:{b}'); assert 'uritemplate' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
