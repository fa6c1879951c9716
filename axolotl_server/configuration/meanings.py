"""What settings mean: the texts below the fields of their models."""

import ast
import inspect
import sys
from functools import cache

from pydantic import BaseModel

__all__ = ["meanings_of"]


def meanings_of(model: type[BaseModel]) -> dict[str, str]:
    """Read what is written below each field of a model, or of one that it derives from.

    The models do not read it themselves when they are made: every start of a server would pay for it.
    """
    found: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if issubclass(owner, BaseModel) and owner is not BaseModel:
            found.update(_texts_in(owner.__module__).get(owner.__qualname__, {}))
    return {name: text for name, text in found.items() if name in model.model_fields}


@cache
def _texts_in(module: str) -> dict[str, dict[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:  # a distribution without sources still has its settings
        return {}
    return {node.name: _texts(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _texts(node: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for above, below in zip(node.body, node.body[1:], strict=False):
        match above, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = " ".join(text.split())
    return texts
