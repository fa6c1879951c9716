from dependency_injector import containers, providers
from greeter import Greet


# region container
class Container(containers.DeclarativeContainer):
    settings = providers.Object(
        {
            "server": {"name": "acme-greeter", "title": "Acme greeter"},
            "limits": {"timeout_seconds": 10},
            "tools": {"greet": {"max_concurrency": 4}},
        }
    )
    tools = providers.List(providers.Singleton(Greet))


# endregion container
