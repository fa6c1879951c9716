"""Field types of a registry, with their validators."""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from axolotl_examples.three_good_sources.keys import PublicKey

_MARKDOWN: Final = re.compile(r"`|\*\*|__|\]\(|^(?:#|>|[-*] )")
_SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_WORDS: Final = re.compile(r"[a-z0-9]+(?: [a-z0-9]+)*")
_NUMBERS: Final = re.compile(r"\d+\.\d+\.\d+", re.ASCII)


def _wrong(expectation: str) -> PydanticCustomError:
    return PydanticCustomError("wrong_text", "{expectation}", {"expectation": expectation})


def _line(text: str) -> str:
    if not text or text != text.strip() or not text.isprintable():
        raise _wrong("must be one line of text, without leading or trailing spaces")
    if _MARKDOWN.search(text):
        raise _wrong("must be plain text, without Markdown")
    return text


def _slug(text: str) -> str:
    if not _SLUG.fullmatch(text):
        raise _wrong("must be lower-case words joined by hyphens")
    return text


def _keyword(text: str) -> str:
    if not _WORDS.fullmatch(text):
        raise _wrong("must be lower-case words")
    return text


def _version(text: str) -> str:
    if not _NUMBERS.fullmatch(text):
        raise _wrong("must be three numbers, such as 1.0.0")
    return text


def _https_url(text: str) -> str:
    try:
        url = urlsplit(text)
        clean = text.isascii() and text.isprintable() and " " not in text and url.port is None
    except ValueError:  # an invalid port or IPv6 address
        clean = False
    if not clean or url.scheme != "https" or "." not in url.netloc or "@" in url.netloc:
        raise _wrong("must be an https URL with a public host, without port and credentials")
    return text


def _public_key(text: str) -> str:
    try:
        PublicKey.parse(text)
    except ValueError as error:
        raise _wrong(str(error)) from None
    return text


HttpsUrl = Annotated[str, AfterValidator(_https_url)]
Keyword = Annotated[str, AfterValidator(_keyword)]
Line = Annotated[str, AfterValidator(_line)]
PublicKeyText = Annotated[str, AfterValidator(_public_key)]
Slug = Annotated[str, AfterValidator(_slug)]
Version = Annotated[str, AfterValidator(_version)]
