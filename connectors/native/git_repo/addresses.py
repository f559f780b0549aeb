"""Where a repository may be read from, and where people see it."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from requests_hardened.ip_filter import InvalidIPAddress, get_ip_address

from config.errors import InvalidInputError, RejectedError, TransientError
from config.http_guard import is_open_host
from connectors.local_folders import allowed_folder
from connectors.native.git_repo.command import Remote

_SCP = re.compile(r"(?P<user>[\w.-]+@)(?P<host>[\w.-]+):(?P<path>[^/].*)")
_PORTS = {"https": 443, "http": 80, "ssh": 22}
# Part of the host's name → how it addresses files and commits.
_PAGES = (
    ("github", "blob/{branch}/{path}", "commit/{sha}"),
    ("gitlab", "-/blob/{branch}/{path}", "-/commit/{sha}"),
    ("bitbucket", "src/{branch}/{path}", "commits/{sha}"),
    ("gitea", "src/branch/{branch}/{path}", "commit/{sha}"),
    ("codeberg", "src/branch/{branch}/{path}", "commit/{sha}"),
    ("forgejo", "src/branch/{branch}/{path}", "commit/{sha}"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """A repository's address taken apart. `ssh` addresses of the short form are written out."""

    address: str
    protocol: str
    host: str
    port: int

    @property
    def name(self) -> str:
        """The repository's own name."""
        return (
            self.address.removesuffix("/.git").rstrip("/").rsplit("/", 1)[-1].removesuffix(".git")
        )

    def file_page(self, branch: str, path: str) -> str:
        """Where people read a file; empty when that is not known."""
        return self._page(1, branch=quote(branch), path=quote(path), sha="")

    def commit_page(self, sha: str) -> str:
        """Where people read a commit; empty when that is not known."""
        return self._page(2, branch="", path="", sha=sha)

    def _page(self, kind: int, **parts: str) -> str:
        for known in _PAGES:
            if known[0] in self.host:
                way = urlsplit(self.address).path.strip("/").removesuffix(".git")
                return f"https://{self.host}/{way}/{known[kind].format(**parts)}"
        return ""


def place_of(address: str) -> Place:
    """Raises `InvalidInputError` for what may not or cannot be read."""
    if address.startswith(("/", "~")):
        return Place(str(allowed_folder(address)), "file", "", 0)
    if short := _SCP.fullmatch(address):
        address = f"ssh://{short['user']}{short['host']}/{short['path']}"
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise InvalidInputError("The address of the repository cannot be read.") from error
    host = parts.hostname or ""
    allowed = {"https", "ssh"} | ({"http"} if is_open_host(host, port) else set())
    if parts.scheme not in allowed or not host or host.startswith("-"):
        raise InvalidInputError(
            "The repository needs an address that begins with https:// or ssh://, or the path of a "
            "folder that the operator allows."
        )
    if parts.password or (parts.username and parts.scheme != "ssh"):
        raise InvalidInputError("Give user name and password as credentials, not in the address.")
    return Place(address, parts.scheme, host, port)


def remote_of(place: Place, header: str = "", private_key: str = "") -> Remote:
    """What git is given. The host is looked up once, here, and must be public or opened by the operator."""
    pinned = "" if place.protocol == "file" else _public_address(place)
    return Remote(
        place.address, place.protocol, place.host, place.port, pinned, header, private_key
    )


def _public_address(place: Place) -> str:
    if is_open_host(place.host, place.port):
        return ""
    try:
        return str(get_ip_address(place.host, place.port, allow_loopback=False)[0])
    except InvalidIPAddress:
        raise RejectedError(
            f"{place.host} lies in a private network. The operator can open it with "
            "GROUNDWORK_PRIVATE_HOSTS."
        ) from None
    except (socket.gaierror, UnicodeError):
        raise TransientError(f"{place.host} cannot be found.") from None
