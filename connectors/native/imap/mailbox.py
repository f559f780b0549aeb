"""A connection to an IMAP server that only reads, with its errors told as ours."""

from __future__ import annotations

import io
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any, BinaryIO, Literal

from imapclient import IMAPClient, SocketTimeout
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, LoginError

from config.addresses import reachable_address, tls_context
from config.errors import (
    CredentialsError,
    InvalidInputError,
    RejectedError,
    RemoteError,
    TransientError,
)
from config.http_guard import is_open_host

Security = Literal["tls", "starttls", "none"]

_WINDOW = 50_000  # UIDs in an answer; imaplib takes lines of a million bytes
_TIMEOUT = SocketTimeout(connect=10, read=60)
_PORTS = {"tls": 993, "starttls": 143, "none": 143}
_HEADERS = "BODY.PEEK[HEADER.FIELDS (MESSAGE-ID DATE FROM TO CC SUBJECT IN-REPLY-TO REFERENCES)]"
_BUSY = ("[UNAVAILABLE]", "[LIMIT]", "[INUSE]", "[SERVERBUG]")


@dataclass(frozen=True, slots=True)
class Server:
    """Where a mailbox is."""

    host: str
    port: int | None
    security: Security


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder as the server lists it. `marks` are its special uses, in small letters."""

    name: str
    delimiter: str
    marks: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class FolderState:
    """What the server says of a folder when it is opened. `modseq` is 0 where it keeps none."""

    validity: int
    next: int
    exists: int
    modseq: int


class Mailbox:
    """Messages are named by UID. A connection that broke is made anew with the next question, for some servers
    hang up over a message that they cannot read. Not for use by several threads."""

    def __init__(self, server: Server, name: str, password: str) -> None:
        self._server = server
        self._proof = (name, password)
        self._client: Any = None
        self._selected = ""
        self._validity: dict[str, int] = {}
        self._kept = False

    def __enter__(self) -> Mailbox:
        self.connect()
        self._kept = True
        return self

    def __exit__(self, *_: object) -> None:
        self._kept = False  # who asks later on has a connection for each question
        self._drop()

    def connect(self) -> None:
        """Log in, if need be. Raises `RemoteError`, or `InvalidInputError` where the password would be
        readable."""
        if self._client is None:
            self._client = _connected(self._server, *self._proof)

    def folders(self) -> list[Folder]:
        """All of them, by name."""
        with self._asking() as client:
            listed = client.list_folders()
        return sorted(
            (
                Folder(str(name), (delimiter or b"/").decode(), frozenset(map(bytes.lower, flags)))
                for flags, delimiter, name in listed
            ),
            key=lambda folder: folder.name,
        )

    def open(self, name: str) -> FolderState:
        """Open a folder for reading only."""
        with self._asking() as client:
            facts = client.select_folder(name, readonly=True)
            modseq = facts.get(b"HIGHESTMODSEQ", 0)
            state = FolderState(
                validity=int(facts[b"UIDVALIDITY"]),
                next=int(facts[b"UIDNEXT"]),
                exists=int(facts[b"EXISTS"]),
                modseq=int(modseq[0] if isinstance(modseq, list | tuple) else modseq),
            )
        self._selected, self._validity[name] = name, state.validity
        return state

    def uids(self, folder: str, state: FolderState, since: date | None) -> list[int]:
        """All there are in a folder. From the top down: what is expunged meanwhile moves later ones down,
        into windows that are still to come."""
        criteria = ["SINCE", since] if since else []
        found: set[int] = set()
        with self._asking(folder) as client:
            for last in range(state.exists, 0, -_WINDOW):
                window = f"{max(1, last - _WINDOW + 1)}:{last}"
                found.update(client.search([window, *criteria]))
        return sorted(uid for uid in found if uid < state.next)

    def changed(self, folder: str, modseq: int) -> set[int]:
        """Messages whose flags are others than at that time (RFC 7162)."""
        with self._asking(folder) as client:
            return set(client.search(["MODSEQ", str(modseq + 1)]))

    def headers(self, folder: str, uids: Sequence[int]) -> dict[int, Mapping[bytes, Any]]:
        """What a record needs of each message that is there."""
        items = ["FLAGS", "INTERNALDATE", "RFC822.SIZE", _HEADERS]
        with self._asking(folder) as client:
            answers = client.fetch(uids, items)
        return {uid: facts for uid, facts in answers.items() if b"RFC822.SIZE" in facts}

    def content(self, folder: str, uid: int, max_bytes: int) -> BinaryIO:
        """A whole message. It stays unread."""
        with self._asking(folder) as client:
            answer = client.fetch([uid], [f"BODY.PEEK[]<0.{max_bytes + 1}>"]).get(uid, {})
        content = header_bytes(answer)
        if not content:
            raise RejectedError("The message is no longer there.")
        if len(content) > max_bytes:
            raise RejectedError(f"Larger than {max_bytes // 1024 // 1024} MB.")
        return io.BytesIO(content)

    @contextmanager
    def _asking(self, folder: str = "") -> Iterator[Any]:
        self.connect()
        is_over = not self._kept
        try:
            with _translated(self._server.host):
                if folder and folder != self._selected:
                    self._select(folder)
                yield self._client
        except TransientError:
            is_over = True
            raise
        finally:
            if is_over:
                self._drop()

    def _select(self, folder: str) -> None:
        facts = self._client.select_folder(folder, readonly=True)
        known = self._validity.get(folder)
        if known not in {None, facts.get(b"UIDVALIDITY")}:
            raise TransientError(f"{folder} has been made anew.")  # other messages have these UIDs
        self._selected = folder

    def _drop(self) -> None:
        client, self._client, self._selected = self._client, None, ""
        if client is not None:
            client.__exit__(None, None, None)  # says goodbye, whatever state the connection is in


def header_bytes(facts: Mapping[bytes, Any]) -> bytes:
    """The section that was asked for; servers write its name in several ways."""
    return next((value for key, value in facts.items() if key.startswith(b"BODY[")), b"") or b""


def _connected(server: Server, name: str, password: str) -> Any:
    host, port = server.host, server.port or _PORTS[server.security]
    address = reachable_address(host, port)
    if server.security == "none" and not is_open_host(host, port):
        raise InvalidInputError("Without TLS the password can be read on its way. Choose TLS.")
    context, is_tls = tls_context(host), server.security == "tls"
    with _translated(host):
        client = IMAPClient(address, port, ssl=is_tls, ssl_context=context, timeout=_TIMEOUT)
    client.normalise_times = False
    try:
        with _translated(host):
            if server.security == "starttls":
                client.starttls(context)
            _log_in(client, host, name, password)
    except BaseException:
        client.__exit__(None, None, None)
        raise
    return client


def _log_in(client: Any, host: str, name: str, password: str) -> None:
    try:
        if client.has_capability("AUTH=PLAIN"):  # which takes passwords in any script
            client.plain_login(name, password)
        else:
            client.login(name, password)
    except LoginError as error:
        if any(code in str(error) for code in _BUSY):
            raise TransientError(f"{host} takes nobody at the moment.") from None
        raise CredentialsError(f"{host} does not accept the user name or the password.") from None
    if client.has_capability("CONDSTORE") and client.has_capability("ENABLE"):
        client.enable("CONDSTORE")


@contextmanager
def _translated(host: str) -> Iterator[None]:
    """Errors of the library as ours; they are not chained, as they may quote what was sent."""
    try:
        yield
    except RemoteError:
        raise
    except ssl.SSLCertVerificationError as error:
        raise RejectedError(f"{host} has no valid certificate: {error.verify_message}.") from None
    except (IMAPClientAbortError, OSError) as error:
        raise TransientError(f"{host} cannot be reached ({type(error).__name__}).") from None
    except (IMAPClientError, UnicodeError, ValueError, KeyError) as error:
        raise RejectedError(f"{host} refuses: {str(error)[:200]}") from None
