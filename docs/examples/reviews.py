from dependency_injector import containers, providers

from axolotl_core import prompt


@prompt
def review(language: str, strict: bool = False) -> str:
    """Ask for a code review.

    Args:
        language: What the code is written in.
        strict: Whether small things count too.
    """
    wanted = "everything that is wrong" if strict else "what matters"
    return f"Review this {language} code. Name {wanted}."


class Container(containers.DeclarativeContainer):
    prompts = providers.List(providers.Object(review))
