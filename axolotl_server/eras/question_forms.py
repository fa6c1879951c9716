"""What a question looks like to a peer of each revision, and whether a client can be asked it."""

from collections.abc import Iterator, Mapping
from typing import Any

from axolotl_core.errors import MissingCapability
from axolotl_core.protocol.versions import Revision
from axolotl_core.question import Question
from axolotl_core.schema import JsonSchema

__all__ = ["params_for", "satisfied"]


def params_for(question: Question, revision: Revision, elicitation_id: str) -> dict[str, Any]:
    """Give the params of a question in the form that a peer of this revision understands.

    Raises:
        MissingCapability: if the revision has no form for it.
    """
    params = dict(question.params)
    if question.method == "sampling/createMessage":
        return _sampling(params, question, revision)
    if question.method != "elicitation/create":
        return params
    if not revision.elicitation:
        raise _inexpressible("its user cannot be asked", question, revision)
    if params["mode"] == "url":
        return _url(params, question, revision, elicitation_id)
    return params if revision.rich_forms else _plain_form(params, question, revision)


def satisfied(requires: Mapping[str, Any], declared: Mapping[str, Any], revision: Revision) -> bool:
    """Tell whether a client that declared these capabilities can be asked what requires those."""
    return all(_has(declared.get(name), name, parts, revision) for name, parts in requires.items())


def _has(given: Any, name: str, parts: Mapping[str, Any], revision: Revision) -> bool:
    if not isinstance(given, Mapping) or (name == "elicitation" and not revision.elicitation):
        return False
    return all(part in _parts(given, name, revision) for part in parts)


def _parts(given: Mapping[str, Any], name: str, revision: Revision) -> set[str]:
    """List what a capability consists of; in revisions without parts it is whatever there was at the time."""
    if name == "elicitation" and not revision.url_elicitation:
        return {"form"}
    if name == "sampling" and not revision.sampling_tools:
        return {"context"}
    parts = {part for part, value in given.items() if isinstance(value, Mapping)}
    return parts | {"form"} if name == "elicitation" and "url" not in parts else parts


def _url(params: dict[str, Any], question: Question, revision: Revision, elicitation_id: str) -> dict[str, Any]:
    if not revision.url_elicitation:
        raise _inexpressible("its user cannot be asked to open a URL", question, revision)
    return {**params, "elicitationId": elicitation_id} if revision.elicitation_ids else params


def _plain_form(params: dict[str, Any], question: Question, revision: Revision) -> dict[str, Any]:
    schema = params["requestedSchema"]
    several = [name for name, field in schema["properties"].items() if field["type"] == "array"]
    if several:
        raise _inexpressible(f"its user cannot choose several values ({', '.join(several)})", question, revision)
    properties = {name: _plain_field(field) for name, field in schema["properties"].items()}
    return {"message": params["message"], "requestedSchema": {**schema, "properties": properties}}


def _plain_field(field: JsonSchema) -> JsonSchema:
    if field["type"] == "boolean":
        return field
    plain = {key: value for key, value in field.items() if key not in ("default", "oneOf")}
    if "oneOf" in field:
        plain["enum"] = [one["const"] for one in field["oneOf"]]
        plain["enumNames"] = [one["title"] for one in field["oneOf"]]
    return plain


def _sampling(params: dict[str, Any], question: Question, revision: Revision) -> dict[str, Any]:
    if revision.sampling_tools:
        messages = params["messages"] if revision.any_structured_root else map(_object_outcomes, params["messages"])
        return {**params, "messages": list(messages)}
    if "tools" in question.requires["sampling"]:
        raise _inexpressible("its model cannot be given tools", question, revision)
    messages = [single for message in params["messages"] for single in _single_messages(message, revision)]
    if not revision.audio and any(message["content"]["type"] == "audio" for message in messages):
        raise _inexpressible("its model cannot be given audio", question, revision)
    return {**params, "messages": messages}


def _single_messages(message: Mapping[str, Any], revision: Revision) -> Iterator[dict[str, Any]]:
    """Split a message into one for each of its blocks."""
    for block in _blocks(message):
        yield {"role": message["role"], "content": block if revision.titles else _plain_block(block)}


def _plain_block(block: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in block.items() if key != "_meta"}
    if "annotations" in plain:
        plain["annotations"] = {key: value for key, value in plain["annotations"].items() if key != "lastModified"}
    return plain


def _object_outcomes(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put structured outcomes of tools that are no objects under `result`."""
    blocks = [_object_outcome(block) for block in _blocks(message)]
    return {**message, "content": blocks if isinstance(message["content"], list) else blocks[0]}


def _object_outcome(block: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(block.get("structuredContent", {}), dict):
        return block
    return {**block, "structuredContent": {"result": block["structuredContent"]}}


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message["content"]
    return content if isinstance(content, list) else [content]


def _inexpressible(problem: str, question: Question, revision: Revision) -> MissingCapability:
    return MissingCapability(f"The client speaks revision {revision.name}: {problem}", question.requires)
