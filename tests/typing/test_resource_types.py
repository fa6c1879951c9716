"""Type inference for resources, checked by mypy; running the tests proves only that the file imports."""

from collections.abc import AsyncIterator, Coroutine
from typing import Any, Generic, TypeVar, assert_type

from pydantic import BaseModel

from axolotl_core import CacheHint, Context, IResource, IResourceTemplate, ResourceRegistry, resource, resources_of
from axolotl_core.content import Annotations, TextResource
from axolotl_core.registry import AnyResource
from axolotl_core.resources.resource import FunctionResource, FunctionResourceTemplate, ResourceContents
from axolotl_core.scanning import scan_resources

VariablesT = TypeVar("VariablesT", bound=BaseModel)


class UserId(BaseModel):
    user_id: int


class Settings(IResource):
    name = "settings"
    uri = "config://app"
    mime_type = "application/json"
    annotations = Annotations(audience=("user",))
    cache = CacheHint(5)

    async def read(self, context: Context) -> dict[str, str]:
        assert_type(context.uri, str)
        return {}


class PlainSettings(IResource):
    name = "plain-settings"
    uri = "config://plain"

    def read(self, context: Context) -> bytes:
        return b""


class Profile(IResourceTemplate[UserId]):
    name = "profile"
    uri_template = "users://{user_id}"

    async def read(self, variables: UserId, context: Context) -> TextResource:
        assert_type(variables.user_id, int)
        return TextResource(context.uri, str(variables.user_id))


class Stored(IResourceTemplate[VariablesT], Generic[VariablesT]):
    async def read(self, variables: VariablesT, context: Context) -> VariablesT:
        return variables


class StoredUser(Stored[UserId]):
    name = "stored"
    uri_template = "stored://{user_id}"


class WrongVariables(IResourceTemplate[UserId]):
    async def read(self, variables: str, context: Context) -> str:  # type: ignore[override]
        return variables


@resource("config://app", mime_type="application/json", size=2, cache=CacheHint(60, "public"))
def config() -> dict[str, str]:
    return {}


@resource("users://{user_id}/posts{?page}")
async def posts(user_id: int, page: int = 1) -> list[str]:
    return [str(user_id)] * page


@resource("stream://numbers")
async def numbers() -> AsyncIterator[int]:
    yield 1


@posts.completes("user_id")
def user_ids(value: str) -> list[str]:
    return [value]


class Shelf:
    @resource("shelf://{number}")
    def book(self, number: int) -> bytes:
        return bytes(number)


async def test_decorated_functions_keep_their_types() -> None:
    """Calling the resource has the type of the function, with and without URI variables."""
    assert_type(config(), dict[str, str])
    pending = posts(1, page=2)
    assert assert_type(pending, Coroutine[Any, Any, list[str]]) is pending
    assert assert_type(await pending, list[str]) == ["1", "1"]
    assert_type(numbers(), AsyncIterator[int])
    assert_type(Shelf().book(2), bytes)
    assert_type(user_ids("1"), list[str])


async def test_read_is_typed_by_the_class() -> None:
    """`read` returns the type of the class, and `execute` always returns the same type."""
    assert_type(await Settings().read(Context()), dict[str, str])
    assert_type(await Profile().read(UserId(user_id=1), Context()), TextResource)
    assert_type(await StoredUser().read(UserId(user_id=1), Context()), UserId)
    contents = await Profile().execute(UserId(user_id=1), Context(uri="users://1"))
    assert_type(contents, ResourceContents)
    assert contents == (TextResource("users://1", "1"),)


def test_registries_hold_any_resource() -> None:
    """Registries accept resources and templates, and lookups are checked for None."""
    registry = ResourceRegistry([Settings(), PlainSettings(), Profile(), posts, *resources_of(Shelf())])
    assert_type(registry.try_get("config://app"), AnyResource | None)
    assert_type(registry.get_all(), tuple[IResource | IResourceTemplate[Any], ...])
    found = resources_of(Shelf())
    assert_type(found, tuple[FunctionResource[..., Any] | FunctionResourceTemplate[..., Any], ...])
    assert_type(scan_resources("axolotl_core.names"), tuple[IResource | IResourceTemplate[Any], ...])
    assert len(registry) == 5


def test_wrong_uses_are_seen_by_the_checker() -> None:
    """Each wrong use needs a `type: ignore`, which strict mypy verifies."""

    def probe() -> None:
        posts("five")  # type: ignore[arg-type, unused-coroutine]
        posts(user_id=5, pag=2)  # type: ignore[call-arg, unused-coroutine]
        resource(config)  # type: ignore[arg-type]
        resource("a://b", coerce_arguments=True)  # type: ignore[call-arg]
        posts.completes("user_id")(5)  # type: ignore[type-var]
        CacheHint(5, "shared")  # type: ignore[arg-type]

    assert callable(probe)
    assert WrongVariables.input_model is UserId
