"""IResource and IResourceTemplate: typed variables, and checks before registration."""

import re
from datetime import date
from enum import Enum
from types import new_class
from typing import Any, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict

from axolotl_core import ConfigurationError, Context, InvalidArguments, IResource, IResourceTemplate
from axolotl_core.resources.resource import check_resource
from tests.support.core.feature_calls import read, text_at

VariablesT = TypeVar("VariablesT", bound=BaseModel)
APP = "text/html;profile=mcp-app"


class Section(Enum):
    NEWS = "news"
    SPORT = "sport"


class Article(BaseModel):
    """Variables of every kind."""

    section: Section
    day: date
    page: int = 1
    tags: list[str] = []
    order: Literal["old", "new"] | None = None


class Articles(IResourceTemplate[Article]):
    name = "articles"
    uri_template = "paper://{section}/{day}{?page,tags*,order}"

    async def read(self, variables: Article, context: Context) -> str:
        return variables.model_dump_json()


async def test_variables_are_converted_from_text() -> None:
    """Each field receives a value of its own type, or its default where the URI has none."""
    assert await text_at(Articles(), "paper://news/2024-02-03") == (
        '{"section":"news","day":"2024-02-03","page":1,"tags":[],"order":null}'
    )
    assert await text_at(Articles(), "paper://sport/2024-02-03?page=2&tags=a&tags=b&order=new") == (
        '{"section":"sport","day":"2024-02-03","page":2,"tags":["a","b"],"order":"new"}'
    )


def test_variables_that_do_not_fit_are_refused() -> None:
    """All problems are reported at once."""
    with pytest.raises(InvalidArguments, match=r"section: .*day: .*page: "):
        read(Articles(), section="weather", day="today", page="first")


@pytest.mark.parametrize(
    ("variable", "suggested"),
    [("section", ["news", "sport"]), ("order", ["old", "new"]), ("page", []), ("tags", []), ("unknown", [])],
)
async def test_choices_complete_themselves(variable: str, suggested: list[str]) -> None:
    """Types with a fixed set of values need no completer."""
    assert await Articles().complete(variable, "", {}) == suggested


class Named(BaseModel):
    name: str


class Echo(IResourceTemplate[VariablesT], Generic[VariablesT]):
    """A class in between that leaves the variables open."""

    async def read(self, variables: VariablesT, context: Context) -> Any:
        return variables


class NamedEcho(Echo[Named]):
    name = "named-echo"
    uri_template = "echo://{name}"


class LouderEcho(NamedEcho):
    uri_template = "echo://{name}/loud"


async def test_generic_classes_in_between_pass_the_variables_on() -> None:
    """The type argument of a subclass also applies to its subclasses."""
    for template in (NamedEcho(), LouderEcho()):
        check_resource(template)
    assert await text_at(NamedEcho(), "echo://Ada") == '{"name":"Ada"}'
    assert await text_at(LouderEcho(), "echo://Ada/loud") == '{"name":"Ada"}'


def test_a_template_without_type_arguments_is_refused_when_it_is_defined() -> None:
    """The error says what to write."""
    with pytest.raises(TypeError, match=re.escape("class Bare(IResourceTemplate[Variables])")):

        class Bare(IResourceTemplate):  # type: ignore[type-arg]
            async def read(self, variables: Any, context: Context) -> Any: ...


class Fixed(IResource):
    name = "fixed"
    uri = "test://fixed"

    async def read(self, context: Context) -> str:
        return ""


def fixed(**attributes: Any) -> IResource:
    """Make a resource whose attributes may be wrong."""
    resource = Fixed()
    for name, value in attributes.items():
        setattr(resource, name, value)
    return resource


def template(text: Any, model: Any = Named, **attributes: Any) -> IResourceTemplate[Any]:
    """Make a template whose parts may not fit."""
    kind = new_class("Probe", (Echo[model],), exec_body=lambda body: body.update({"name": "probe"} | attributes))
    made: IResourceTemplate[Any] = kind()
    made.uri_template = text
    return made


class Optionals(BaseModel):
    name: str
    page: int


class Listed(BaseModel):
    name: list[str]


class Nested(BaseModel):
    name: Named


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Nameless(IResource):
    uri = "a://b"

    async def read(self, context: Context) -> str:
        return ""


class Unfinished(IResource):
    name = "unfinished"

    async def read(self, context: Context) -> str:
        return ""


class Both(Fixed, Echo[Named]):  # type: ignore[misc]
    uri_template = "a://{name}"


@pytest.mark.parametrize(
    ("resource", "text"),
    [
        pytest.param(Fixed, "register an instance, not the class", id="class"),
        pytest.param("a://b", "subclass IResource or IResourceTemplate, or use @resource", id="text"),
        pytest.param(Nameless(), 'has no name: write name = "nameless" in the class', id="no-name"),
        pytest.param(Unfinished(), "Unfinished has the URI None: use one with a scheme", id="no-uri"),
        pytest.param(Both(), "Both is both a resource and a template: make it one of them", id="both"),
        pytest.param(fixed(uri=5), "has the URI 5", id="uri-is-no-text"),
        pytest.param(fixed(uri="app"), "has the URI 'app'", id="no-scheme"),
        pytest.param(fixed(uri="a/b:c"), "has the URI 'a/b:c'", id="colon-in-a-path"),
        pytest.param(fixed(uri="a:"), "has the URI 'a:'", id="scheme-only"),
        pytest.param(fixed(uri="a://b c"), "has the URI 'a://b c'", id="space"),
        pytest.param(fixed(uri="a://b\n"), r"has the URI 'a://b\n'", id="line-end"),
        pytest.param(fixed(uri="a://{b}"), "for a URI with variables, subclass IResourceTemplate", id="braces"),
        pytest.param(
            fixed(uri="ui://b", mime_type="text/html"), f"the MIME type of a ui:// resource is {APP}", id="ui"
        ),
        pytest.param(template(None), "Probe has no URI template: write uri_template =", id="no-template"),
        pytest.param(template("a://{name", Named), "'{' is unbalanced", id="malformed"),
        pytest.param(template("{name}://a"), "it must begin with a literal scheme", id="no-scheme-in-template"),
        pytest.param(
            template("a://b", Open), "it has no variables; for a fixed URI, subclass IResource", id="no-variables"
        ),
        pytest.param(template("a://{name}", int), "class Probe(IResourceTemplate[Variables])", id="no-model"),
        pytest.param(template("a://{name}/{x}"), "x is in the template, but not in the variables", id="no-field"),
        pytest.param(
            template("a://{name}", Optionals), "page is in the variables, but not in the template", id="extra"
        ),
        pytest.param(
            template("a://{name}{?page}", Optionals), "page is optional in the URI; add a default", id="query"
        ),
        pytest.param(template("a://{name,page}", Optionals), "page is optional", id="second-of-two"),
        pytest.param(template("a://b{/name}"), "name is optional", id="segment"),
        pytest.param(template("a://b{#name}"), "name is optional", id="fragment"),
        pytest.param(template("a://b{/name*}", Listed), "name is optional", id="segments"),
        pytest.param(template("a://{name*}"), "name cannot be parsed from strings", id="text-for-a-list"),
        pytest.param(template("a://{name}", Listed), "name cannot be parsed from a string", id="list-for-text"),
        pytest.param(template("a://{name}", Nested), "name cannot be parsed from a string", id="model"),
        pytest.param(
            template("a://{name}", unscreened=frozenset({"nam"})),
            "unscreened contains nam, which is not a variable",
            id="unscreened",
        ),
        pytest.param(template("a://{name}", unscreened="name"), "unscreened contains a, which is not a", id="one-text"),
        pytest.param(template("ui://{name}", mime_type="text/html"), f"is {APP}", id="ui-template"),
    ],
)
def test_a_resource_is_checked_before_it_is_registered(resource: Any, text: str) -> None:
    """Errors say what is missing or wrong, and what to write."""
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        check_resource(resource)


@pytest.mark.parametrize(
    "resource",
    [
        pytest.param(Fixed(), id="fixed"),
        pytest.param(fixed(uri="urn:isbn:1"), id="urn"),
        pytest.param(fixed(uri="file:///a%20b?x=1#y"), id="query"),
        pytest.param(fixed(uri="a://ä"), id="letters"),
        pytest.param(fixed(uri="ui://b"), id="ui"),
        pytest.param(fixed(uri="ui://b", mime_type=APP), id="ui-said"),
        pytest.param(Articles(), id="template"),
        pytest.param(template("a://{+name}", unscreened=frozenset({"name"})), id="unscreened"),
        pytest.param(template("a://{name*}", Listed), id="list"),
        pytest.param(template("a://{name:3}"), id="prefix"),
    ],
)
def test_valid_resources_are_accepted(resource: Any) -> None:
    """Valid resources are accepted."""
    check_resource(resource)
