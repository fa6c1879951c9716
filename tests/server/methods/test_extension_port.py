"""Extensions: settings, methods and identifiers."""

from collections.abc import Mapping
from typing import Any

import pytest

from axolotl_core import ConfigurationError, Context
from axolotl_server.extension import Extension, ExtensionMethod, check_extension


class Receipts(Extension):
    identifier = "com.example/receipts"

    @property
    def methods(self) -> Mapping[str, ExtensionMethod]:
        return {"receipts/get": self.get}

    async def get(self, params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
        return {"id": params["id"], "request": context.request_id}


async def test_an_extension_answers_its_methods() -> None:
    """A method takes the parameters and the context, and returns the result."""
    check_extension(Receipts())
    assert Receipts().settings == {}
    answer = await Receipts().methods["receipts/get"]({"id": 5}, Context(request_id=7))
    assert answer == {"id": 5, "request": 7}


def test_an_extension_may_only_be_announced() -> None:
    """Settings are optional."""
    made = Extension("com.example/receipts", {"version": 1})
    assert (made.identifier, made.settings, made.methods) == ("com.example/receipts", {"version": 1}, {})
    assert Extension("com.example/receipts").settings == {}


@pytest.mark.parametrize(
    "identifier",
    [
        "com.example/receipts",
        "io.modelcontextprotocol/ui",
        "a/b",
        "com.my-company.x9/a_b.c-d",
        "com.example/2",
    ],
)
def test_an_identifier_stands_below_a_domain(identifier: str) -> None:
    """The form is that of the keys in `_meta`, with a prefix."""
    check_extension(Extension(identifier))


@pytest.mark.parametrize(
    "identifier",
    [
        None,
        5,
        "",
        "receipts",
        "/receipts",
        "com.example/",
        "com.example/a/b",
        "com..example/a",
        ".com/a",
        "com./a",
        "9com.example/a",
        "-com/a",
        "com-/a",
        "com.example/-a",
        "com.example/a-",
        "com.example/a b",
        "com.example/a\n",
        "cöm/a",
    ],
)
def test_another_form_is_refused(identifier: Any) -> None:
    """The error contains the identifier and an example."""
    with pytest.raises(ConfigurationError, match=r"Extension has the identifier .*: use one such as com\.example/rec"):
        check_extension(Extension(identifier))


def test_an_extension_without_an_identifier_is_refused() -> None:
    """The error contains the class."""

    class Forgetful(Extension): ...

    with pytest.raises(ConfigurationError, match="Forgetful has the identifier None"):
        check_extension(Forgetful())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(Receipts, "the class Receipts; use an instance", id="class"),
        pytest.param("com.example/receipts", "contains str, which is not an Extension", id="text"),
        pytest.param(None, "contains NoneType, which is not an Extension", id="nothing"),
    ],
)
def test_other_objects_are_refused(value: Any, text: str) -> None:
    """The error contains the type of the value."""
    with pytest.raises(ConfigurationError, match=text):
        check_extension(value)
