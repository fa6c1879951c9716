from dependency_injector import containers, providers

from axolotl_core import prompt


@prompt
def review(language: str, strict: bool = False) -> str:
    """Ask for a code review.

    Args:
        language: The programming language of the code.
        strict: Whether to report minor issues too.
    """
    wanted = "all issues" if strict else "the most important issues"
    return f"Review this {language} code and report {wanted}."


class Container(containers.DeclarativeContainer):
    prompts = providers.List(providers.Object(review))
