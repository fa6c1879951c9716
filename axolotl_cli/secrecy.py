"""Values that look as if nobody else should read them."""

import re
from typing import Final
from urllib.parse import urlsplit

__all__ = ["is_secret_url", "looks_secret"]

_NAME: Final = re.compile(
    r"(?:^|_)(?:api_?key|key|keys|token|tokens|secret|secrets|pass|passwd|password|passphrase|pwd|pin|credential|"
    r"credentials|bearer|authorization|cookie|jwt|dsn)$",
    re.IGNORECASE,
)
_VALUE: Final = re.compile(
    r"(?:sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[abprs]|axk|npm|pypi|hf)[-_][\w-]{8,}"
    r"|eyJ[\w-]{8,}\.[\w-]+\.?[\w-]*|A(?:KIA|SIA)[0-9A-Z]{16}|AIza[\w-]{30,}|Bearer\s+\S+|-----BEGIN .*",
    re.IGNORECASE | re.DOTALL,
)
_REFERENCE: Final = re.compile(r"\$\{[^}]+\}")


def looks_secret(name: str, value: str) -> bool:
    """Tell whether a variable is called like a secret, or its value has the form of one."""
    if not value or _REFERENCE.fullmatch(value):
        return False
    return bool(_NAME.search(name) or _VALUE.match(value.strip()) or is_secret_url(value))


def is_secret_url(value: str) -> bool:
    """Tell whether a URL has a password in it, or something in its query that is called like a secret."""
    try:
        parts = urlsplit(value)
        if parts.password:
            return True
    except ValueError:
        return False
    names = (pair.partition("=")[0] for pair in parts.query.split("&"))
    return bool(parts.scheme and any(_NAME.search(name.replace("-", "_")) for name in names))
