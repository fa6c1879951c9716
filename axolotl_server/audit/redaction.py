"""Arguments as a record may show them."""

from typing import Any, Final

import msgspec
from pydantic import BaseModel

from axolotl_core.canonical import decode_exactly
from axolotl_core.function_feature import FunctionFeature
from axolotl_core.signature import Signature
from axolotl_core.spec import FeatureSpec
from axolotl_server.audit.describing import Redact
from axolotl_server.audit.shapes import ShapeReader, Shapes, shown

__all__ = ["nothing_shown", "redactor"]

_MOST_BYTES: Final = 16 * 1024
"""Larger arguments are not shown at all: a record is no place for them."""

_encode: Final = msgspec.json.Encoder().encode


def nothing_shown(spec: FeatureSpec) -> None:
    """Show no arguments."""


def redactor(spec: FeatureSpec) -> Redact | None:
    """Compile what writes the arguments of a feature; None for those whose arguments have no types, as raw schemas."""
    shapes = _shapes_of(spec.feature)
    if shapes is None:
        return None

    def redact(raw: bytes) -> msgspec.Raw | None:
        if len(raw) > _MOST_BYTES:
            return None
        try:
            return msgspec.Raw(_encode(shown(decode_exactly(raw), shapes)))
        except (ValueError, RecursionError):
            return None

    return redact


def _shapes_of(feature: Any) -> Shapes | None:
    reader = ShapeReader()
    if isinstance(feature, FunctionFeature):
        parameters = Signature.of(feature.function, skip_first=False).parameters
        return reader.of_fields({parameter.public_name: parameter.annotation for parameter in parameters})
    model = getattr(feature, "input_model", None)
    if isinstance(model, type) and issubclass(model, BaseModel):
        return reader.of(model)
    return None
