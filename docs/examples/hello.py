from axolotl_core import tool


@tool
async def greet(name: str) -> str:
    """Greet someone by name.

    Args:
        name: Whom to greet.
    """
    return f"Hello, {name}!"
