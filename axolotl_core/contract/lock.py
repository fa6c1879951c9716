"""The lock: everything about a server's features that callers rely on, in a stable form."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, TypeAlias

import msgspec

from axolotl_core.errors import ConfigurationError
from axolotl_core.names import is_within_toolset
from axolotl_core.protocol.wire import encode_sorted
from axolotl_core.schema import subschemas

LOCK_FILE: Final = "axolotl.lock.json"
FORMAT: Final = 1
MAX_LOCK_BYTES: Final = 64 * 2**20
"""The largest lock that is read."""

Entry: TypeAlias = dict[str, Any]
"""What the lock holds about one feature."""


class Terms(msgspec.Struct, frozen=True):
    """What callers notice about a feature, but no list of a server contains."""

    limits: Mapping[str, Any]
    scopes: Iterable[str]
    toolset: str | None
    requires_approval: bool = False


class Lock(msgspec.Struct, dict=True):
    """The features of a server, by kind and name. Resources have their URI or URI template as the name."""

    tools: dict[str, Entry] = {}
    prompts: dict[str, Entry] = {}
    resources: dict[str, Entry] = {}
    skills: dict[str, Entry] = {}

    @property
    def kinds(self) -> dict[str, dict[str, Entry]]:
        """All features, by kind."""
        return {"tools": self.tools, "prompts": self.prompts, "resources": self.resources, "skills": self.skills}

    @cached_property
    def digest(self) -> str:
        """The digest of everything in the lock."""
        return digest_of({"format": FORMAT, **self.kinds})

    @property
    def document(self) -> dict[str, Any]:
        """The content of the lock file."""
        return {"digest": self.digest, "format": FORMAT, **self.kinds}

    @property
    def text(self) -> str:
        """The lock file: sorted, so that equal contracts are equal files, and a line per fact for reviews."""
        return json.dumps(self.document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def select(self, toolsets: Sequence[str]) -> "Lock":
        """Leave out the features of other tool sets; features outside of any set stay. Without sets, keep all."""
        if not toolsets:
            return self

        def is_chosen(entry: Entry) -> bool:
            toolset = entry.get("toolset")
            return toolset is None or is_within_toolset(toolset, toolsets)

        kept = {
            kind: {name: entry for name, entry in entries.items() if is_chosen(entry)}
            for kind, entries in self.kinds.items()
        }
        return Lock(**kept)


def digest_of(value: Any) -> str:
    """Return the digest of a JSON value."""
    return f"sha256:{sha256(encode_sorted(value)).hexdigest()}"


def read_lock(text: str | bytes, where: str) -> Lock:
    """Read a lock file.

    Raises:
        ConfigurationError: if it is not a lock, or was changed by hand.
    """
    if len(text) > MAX_LOCK_BYTES:
        raise ConfigurationError(f"{where} is larger than {MAX_LOCK_BYTES} bytes, so it cannot be a lock file")
    try:
        document: Any = msgspec.json.decode(text)
        if isinstance(document, dict) and document.get("format", FORMAT) != FORMAT:
            raise ConfigurationError(
                f"{where} has the format {document['format']!r}, but this version of Axolotl reads format {FORMAT}: "
                "write it again with axolotl contract freeze"
            )
        lock = msgspec.convert(document, Lock)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(
            f"{where} is not a lock file: {error}; write it again with axolotl contract freeze"
        ) from None
    if document != lock.document:
        raise ConfigurationError(
            f"{where} was changed after it was written, because its digest does not match: write it again with "
            "axolotl contract freeze"
        )
    return lock


def make_lock(
    tools: Iterable[tuple[Mapping[str, Any], Terms | None]],
    prompts: Iterable[tuple[Mapping[str, Any], Terms | None]],
    resources: Iterable[tuple[Mapping[str, Any], Terms | None]],
    skills: Iterable[tuple[Mapping[str, Any], Terms | None]] = (),
) -> Lock:
    """Make a lock from the definitions in the lists of a server.

    Raises:
        ConfigurationError: if schemas refer to other documents, which can change without notice.
    """
    lock = Lock(
        {definition["name"]: _tool(definition, terms) for definition, terms in tools},
        {definition["name"]: _prompt(definition, terms) for definition, terms in prompts},
        {one.get("uri") or one["uriTemplate"]: _resource(one, terms) for one, terms in resources},
        {entry["uri"]: _skill(entry, terms) for entry, terms in skills},
    )
    findings = [finding for name, entry in lock.tools.items() for finding in _external_references(name, entry)]
    if findings:
        raise ConfigurationError(*findings)
    return lock


def _external_references(name: str, entry: Entry) -> Iterator[str]:
    for side in ("input", "output"):
        nodes = list(subschemas(entry.get(side)))
        references = [node[key] for key in ("$ref", "$dynamicRef", "$recursiveRef") for node in nodes if key in node]
        for reference in dict.fromkeys(map(str, references)):
            if not reference.startswith("#"):
                yield (
                    f"Tool {name!r}: the {side} schema refers to {reference}, which can change without notice: copy "
                    "the definition into $defs"
                )


def _tool(definition: Mapping[str, Any], terms: Terms | None) -> Entry:
    page = definition.get("_meta", {}).get("ui", {}).get("resourceUri")
    entry: Entry = {
        "description": definition.get("description", ""),
        "input": definition["inputSchema"],
        **_present(
            title=definition.get("title"),
            annotations=definition.get("annotations") or None,
            output=definition.get("outputSchema"),
            page=page,
        ),
        **_agreed(terms),
    }
    if terms is not None:
        entry["requires_approval"] = terms.requires_approval
    return {**entry, "digest": digest_of(entry)}


def _prompt(definition: Mapping[str, Any], terms: Terms | None) -> Entry:
    arguments = {
        argument["name"]: {
            "required": argument.get("required", False),
            **_present(description=argument.get("description"), title=argument.get("title")),
        }
        for argument in definition.get("arguments", ())
    }
    texts = {"description": definition.get("description", ""), **_present(title=definition.get("title"))}
    return {"arguments": arguments, **texts, **_agreed(terms)}


def _resource(definition: Mapping[str, Any], terms: Terms | None) -> Entry:
    return {
        "kind": "resource" if "uri" in definition else "template",
        "name": definition.get("name", ""),
        "description": definition.get("description", ""),
        **_present(
            title=definition.get("title"),
            mimeType=definition.get("mimeType"),
            annotations=definition.get("annotations") or None,
            cache=definition.get("cache"),
        ),
        **_agreed(terms),
    }


def _skill(definition: Mapping[str, Any], terms: Terms | None) -> Entry:
    """Keep a digest of the front matter and the files; skills have no limits of their own."""
    agreed = {name: value for name, value in _agreed(terms).items() if name != "limits"}
    return {"digest": digest_of(definition), **agreed}


def _agreed(terms: Terms | None) -> Entry:
    """Add the terms; the features of a server elsewhere have none."""
    if terms is None:
        return {}
    limits = {key: value for key, value in terms.limits.items() if value is not None}
    return {"limits": limits, "scopes": sorted(terms.scopes), "toolset": terms.toolset}


def _present(**members: Any) -> Entry:
    return {name: value for name, value in members.items() if value is not None}
