"""Addresses that a server trusts, or is known by."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Tell whether a name or an address can only be this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_url(url: str) -> str:
    """Make sure that nobody between here and there can read or change what is sent.

    Raises:
        ValueError: if it is no absolute https URL, or http on this machine, or has what such an address cannot have.
    """
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{_shown(url)} is no URL: write https://…")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL here has no user and no password")
    if parts.fragment or "#" in url:
        raise ValueError(f"{_shown(url)} has a fragment: leave out what begins with #")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError(f"{_shown(url)} must begin with https: only on this machine may it be http")
    return url


def canonical(uri: str) -> str:
    """Write a URI so that two spellings of one address are the same; anything else stays as it is."""
    parts = _split(uri)
    if parts is None or not parts.hostname or "@" in parts.netloc:
        return uri
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    rest = uri.split("://", 1)[1][len(parts.netloc) :]
    return f"{parts.scheme}://{host}{port}{'' if rest == '/' else rest}"


def _split(uri: str) -> SplitResult | None:
    """Take a URI apart; None where that cannot be done without changing it."""
    if not uri.isprintable() or " " in uri or "://" not in uri:
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port, parts.hostname
    except ValueError:
        return None
    return parts


def _shown(url: str) -> str:
    """Show a URL without what may be a password."""
    return repr(url.rpartition("@")[2][:200])
