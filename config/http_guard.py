"""Which addresses requests may go to, and which secrets they take along."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

import requests
from django.conf import settings
from requests.adapters import BaseAdapter, HTTPAdapter
from requests_hardened.ip_filter_adapter import IPFilterAdapter

from config.errors import RejectedError
from config.http_answers import host_of

_MAX_REDIRECTS = 10
_PORTS = {"http": 80, "https": 443}
# Never sent on to another host by a redirect.
_SECRET_HEADERS = (
    "Authorization",
    "Cookie",
    "X-Api-Key",
    "Api-Key",
    "X-Auth-Token",
    "Private-Token",
)


class _WithoutQuery(logging.Filter):
    """urllib3 logs whole addresses at the level DEBUG; a query may hold secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Called by `logging` for each record."""
        if isinstance(record.args, tuple):
            record.args = tuple(
                arg.partition("?")[0] if isinstance(arg, str) else arg for arg in record.args
            )
        return True


logging.getLogger("urllib3.connectionpool").addFilter(_WithoutQuery())


class GuardedSession(requests.Session):
    """Connects to public addresses, and to the hosts that the operator names."""

    def __init__(self, secret_headers: tuple[str, ...]) -> None:
        super().__init__()
        self.trust_env = False
        self.max_redirects = _MAX_REDIRECTS
        self._secret_headers = (*_SECRET_HEADERS, *secret_headers)
        self._open = HTTPAdapter()
        self._guarded = {
            "http": IPFilterAdapter(is_https_proto=False),
            "https": IPFilterAdapter(is_https_proto=True),
        }

    def get_adapter(self, url: str | bytes) -> BaseAdapter:
        """By the host that is really connected to: a name in front of an @ is not one."""
        parts = urlsplit(url if isinstance(url, str) else url.decode())
        if parts.scheme not in self._guarded:
            raise RejectedError("Only http and https addresses are fetched.")
        if is_open_host(parts.hostname, parts.port or _PORTS[parts.scheme]):
            return self._open
        adapter: BaseAdapter = self._guarded[parts.scheme]
        return adapter

    def rebuild_auth(
        self, prepared_request: requests.PreparedRequest, response: requests.Response
    ) -> None:
        """Drop every secret when a redirect leads to another host; a body may be one."""
        if self.should_strip_auth(str(response.request.url), str(prepared_request.url)):
            for name in self._secret_headers:
                prepared_request.headers.pop(name, None)
            if prepared_request.body:
                raise RejectedError(
                    f"{host_of(str(response.request.url))} sends what we post on to another host."
                )


def is_open_host(hostname: str | None, port: int | None) -> bool:
    """Whether the operator has opened this host, which may lie in a private network."""
    opened = {name.lower() for name in settings.GROUNDWORK_PRIVATE_HOSTS}
    host = (hostname or "").lower()
    return host in opened or f"{host}:{port}" in opened
