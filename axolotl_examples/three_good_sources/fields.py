"""Field types of a registry, with their validators."""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from axolotl_examples.three_good_sources.keys import PublicKey

_MARKDOWN: Final = re.compile(r"`|\*\*|__|\]\(|^(?:#|>|[-*] )")


def _wrong(expectation: str) -> PydanticCustomError:
    return PydanticCustomError("wrong_text", "{expectation}", {"expectation": expectation})


def _line(text: str) -> str:
    if not text or text != text.strip() or not text.isprintable():
        raise _wrong("must be one line of text, without leading or trailing spaces")
    if _MARKDOWN.search(text):
        raise _wrong("must be plain text, without Markdown")
    return text


def _matching(pattern: str, expectation: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise _wrong(expectation)
        return text

    return AfterValidator(check)


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
Keyword = Annotated[str, _matching("[a-z0-9]+(?: [a-z0-9]+)*", "must be lower-case words")]
Line = Annotated[str, AfterValidator(_line)]
PublicKeyText = Annotated[str, AfterValidator(_public_key)]
Slug = Annotated[str, _matching("[a-z0-9]+(?:-[a-z0-9]+)*", "must be lower-case words joined by hyphens")]
Version = Annotated[str, _matching(r"\d+\.\d+\.\d+", "must be three numbers, such as 1.0.0")]
