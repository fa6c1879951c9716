"""The list of the extensions that come with the server, the only place in the kernel that names them."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from axolotl_server.settings.server import ServerSettings


class Bundled(NamedTuple):
    """An extension that a server gets without the role `extensions`."""

    name: str
    """The first segment of the names of its methods."""
    target: str
    is_used: Callable[[Mapping[str, Any], Sequence[Any], "ServerSettings"], bool]
    """Whether a server has it, judged by the providers of its roles, the tools and the settings."""
    roles: Mapping[str, str] = {}
    """The roles of the container that it reads, and how each is written."""
    offers: tuple[str, ...] = ()
    """The kinds of features that clients find it by, where the container has one of its roles."""

    def load(self) -> Any:
        """Import its class."""
        module, _, name = self.target.partition(":")
        return getattr(import_module(f"axolotl_server.extensions.{module}"), name)


BUNDLED: Final = (
    Bundled(
        "skills",
        "skills.extension:Skills",
        lambda found, tools, settings: "skills" in found,
        {"skills": "providers.List(providers.Singleton(MySkill))"},
        offers=("resources",),
    ),
    Bundled(
        "tasks",
        "tasks.extension:Tasks",
        lambda found, tools, settings: any(getattr(one, "task_support", "forbidden") != "forbidden" for one in tools),
        {"task_engine": "providers.Singleton(MyEngine)"},
    ),
    Bundled("console", "console.console:Console", lambda found, tools, settings: settings.console.enabled),
)
"""All of them, in the order in which they wrap methods."""
