"""Where connections that are not HTTP may go: by the rule of `config.http_guard`.

A name is looked up once. Connect to the address that comes back, not to the name: by then the name may mean
another host. Certificates are checked for the name all the same.
"""

from __future__ import annotations

import ssl
from typing import Any

import requests
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from requests_hardened.ip_filter import InvalidIPAddress, filter_host

from config.errors import RejectedError, TransientError
from config.http_guard import is_open_host


def reachable_address(host: str, port: int) -> str:
    """What to connect to. A host that the operator has opened is returned as it is, which may be the path of
    a socket. Raises `RejectedError` for private addresses, `TransientError` for unknown names."""
    if is_open_host(host, port):
        return host
    private = RejectedError(
        f"{host} lies in a private network. The operator can open it with GROUNDWORK_PRIVATE_HOSTS."
    )
    if "/" in host:
        raise private
    try:
        address: str = filter_host(host.strip("[]"), port, allow_loopback=False)
    except InvalidIPAddress as error:
        raise private from error
    except (requests.RequestException, UnicodeError, OSError) as error:
        raise TransientError(f"{host or 'The host'} cannot be found.") from error
    return address.strip("[]")


class _NamedContext(ssl.SSLContext):
    """Checks the certificate for one name, whatever address is connected to."""

    server_name = ""

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        """Called by the library that connects."""
        return super().wrap_socket(*args, **{**options, "server_hostname": self.server_name})


def tls_context(host: str) -> ssl.SSLContext:
    """Trusts what the system and what `requests` trusts."""
    context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.server_name = host
    context.load_default_certs()
    context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    return context


def trusted_certificates() -> str:
    """The file of certificates for a library that takes no context."""
    return ssl.get_default_verify_paths().cafile or str(DEFAULT_CA_BUNDLE_PATH)
