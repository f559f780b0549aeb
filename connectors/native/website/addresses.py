"""Addresses of pages: one spelling for each, and whether they belong to the site."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from requests.utils import requote_uri

_LONGEST = 1000
_MOST_STEPS = 20  # parts of a path
_PORTS = {"http": 80, "https": 443}
# They say where a visitor came from, not what is shown.
_TRACKING = re.compile(
    r"utm_\w+|[gw]?braid|gclid|gclsrc|dclid|fbclid|msclkid|yclid|igshid|mc_[ce]id|_ga|_gl|_hs\w+|mkt_tok|"
    r"ref_src|spm|phpsessid|jsessionid|oly_\w+|vero_\w+|wt_mc|trk\w*|s_kwcid",
    re.IGNORECASE,
)
_SESSION = re.compile(r";jsessionid=[^/?]*", re.IGNORECASE)
_ESCAPED = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)
_REPEATED = re.compile(
    r"(/[^/]+(?:/[^/]+){0,3})\1{2}(?:/|$)"
)  # /a/b/a/b/a/b: relative links in a circle


@dataclass(frozen=True, slots=True)
class Site:
    """The hosts that are read, and the beginnings of paths if not all."""

    hosts: frozenset[str]
    prefixes: tuple[str, ...] = ()
    secure: frozenset[str] = frozenset()  # those of the hosts that are known by https

    @classmethod
    def of(cls, urls: list[str], prefixes: list[str]) -> Site:
        """The site to which some addresses belong."""
        secure = frozenset(_host(url) for url in urls if url.startswith("https:"))
        return cls(frozenset(_host(url) for url in urls), tuple(prefixes), secure)

    def has(self, url: str) -> bool:
        """Whether an address belongs to it. With and without `www.` are one host."""
        path = urlsplit(url).path
        return _host(url) in self.hosts and (
            not self.prefixes or any(path.startswith(prefix) for prefix in self.prefixes)
        )

    def has_host(self, url: str) -> bool:
        """Whether an address is on one of the hosts, wherever there."""
        return _host(url) in self.hosts

    def upgraded(self, url: str) -> str:
        """The address by https where the host is known so; links by http are left over from before."""
        if url.startswith("http:") and _host(url) in self.secure:
            return "https:" + url.removeprefix("http:")
        return url


def one_spelling(url: str, base: str = "") -> str:
    """The address as it is known by here; empty when it is none, or one of a circle."""
    try:
        parts = urlsplit(urljoin(base, url.strip()))
        host = (parts.hostname or "").encode("idna").decode()
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in _PORTS or not host or parts.username:
        return ""
    if port and port != _PORTS[parts.scheme]:
        host += f":{port}"
    path = _SESSION.sub("", parts.path) or "/"
    if path.count("/") > _MOST_STEPS or _REPEATED.search(path):
        return ""
    plain = urlunsplit((parts.scheme, host, path, _without_tracking(parts.query), ""))
    made = _ESCAPED.sub(lambda found: found[0].upper(), requote_uri(plain))
    return made if len(made) <= _LONGEST else ""


def shape(url: str) -> str:
    """What addresses of one kind have in common: numbers and the values of a query do not matter."""
    parts = urlsplit(url)
    names = "&".join(sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}))
    return re.sub(r"\d+", "0", parts.path) + "?" + names


def _host(url: str) -> str:
    return urlsplit(url).netloc.lower().removeprefix("www.")


def _without_tracking(query: str) -> str:
    if not query:
        return ""
    pairs = parse_qsl(query, keep_blank_values=True)
    kept = [pair for pair in pairs if not _TRACKING.fullmatch(pair[0])]
    # Untouched where there is nothing to remove: spelling it anew might change what it means.
    return query if len(kept) == len(pairs) else urlencode(kept)
