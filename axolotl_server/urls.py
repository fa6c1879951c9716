"""Checks and canonical forms of URLs."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Whether a host name or address refers to this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_url(url: str) -> str:
    """Return an absolute URL that uses https, or http on this machine; raises ValueError for any other."""
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{_shown(url)} is not a URL: write https://…")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL must not contain a user or a password")
    if parts.fragment or "#" in url:
        raise ValueError(f"{_shown(url)} has a fragment: remove the part that begins with #")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError(f"{_shown(url)} must begin with https; http is allowed on this machine only")
    return url


def canonical(uri: str) -> str:
    """Return the canonical form of an address; other URIs stay as they are."""
    parts = _split(uri)
    if parts is None or not parts.hostname or "@" in parts.netloc:
        return uri
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    rest = uri.split("://", 1)[1][len(parts.netloc) :]
    return f"{parts.scheme}://{host}{port}{'' if rest == '/' else rest}"


def hosts_of(url: str) -> frozenset[str]:
    """Return the `Host` headers of requests for a URL: with its port, and without it if it is the default one."""
    parts = urlsplit(canonical(url))
    default = _DEFAULT_PORTS.get(parts.scheme)
    return frozenset({parts.netloc} if parts.port is not None else {parts.netloc, f"{parts.netloc}:{default}"})


def without_secrets(url: str) -> str:
    """Leave out the parts of a URL that may be secret: the user, the password and the query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that is not a URL"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _split(uri: str) -> SplitResult | None:
    """Split a URI; None if that is not possible without changing it."""
    if not uri.isprintable() or " " in uri or "://" not in uri:
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port, parts.hostname
    except ValueError:
        return None
    return parts


def _shown(url: str) -> str:
    """Show a URL without a possible password."""
    return repr(url.rpartition("@")[2][:200])
