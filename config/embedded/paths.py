"""Where everything lies in the data folder, and the addresses that follow from it."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

# sun_path holds 108 bytes; PostgreSQL appends "/.s.PGSQL.5432".
_MAX_SOCKET_FOLDER = 80
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+-]+")


@dataclass(frozen=True, slots=True)
class DataFolder:
    """GROUNDWORK_DATA: one folder per installation. Two folders never share a socket or a port."""

    root: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", self.root.resolve())

    @property
    def postgres(self) -> Path:
        """The PostgreSQL cluster."""
        return self.root / "postgres"

    @property
    def valkey(self) -> Path:
        """Valkey's append-only file."""
        return self.root / "valkey"

    @property
    def originals(self) -> Path:
        """Uploaded files, byte for byte."""
        return self.root / "originals"

    @property
    def models(self) -> Path:
        """Model caches, rebuilt when missing."""
        return self.root / "models"

    @property
    def first_run(self) -> Path:
        """What the first start made: address, account and key."""
        return self.root / "first-run.json"

    @property
    def sockets(self) -> Path:
        """The folder of the unix sockets: in the data folder, or in the temporary one if that path is
        too long for a socket or holds characters that need care in an address."""
        inside = self.root / "run"
        if len(str(inside)) <= _MAX_SOCKET_FOLDER and _PLAIN_PATH.fullmatch(str(inside)):
            return inside
        digest = hashlib.sha256(str(self.root).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"groundwork-{os.getuid()}-{digest}"

    def database_url(self) -> str:
        """The embedded server's address; access is by the socket folder's permissions."""
        return (
            f"postgresql://groundwork@/groundwork?host={quote(str(self.sockets / 'pg'), safe='')}"
        )

    def broker_url(self) -> str:
        """The embedded Valkey's address."""
        return f"unix://{self.sockets / 'valkey.sock'}"

    def create(self) -> None:
        """Make the folder. Others may pass through it (the database may run as another user), not list it.
        A folder that exists keeps its mode."""
        self.root.mkdir(mode=0o711, parents=True, exist_ok=True)
        self.originals.mkdir(mode=0o700, exist_ok=True)
        self.models.mkdir(mode=0o755, exist_ok=True)
        self.sockets.mkdir(mode=0o711, exist_ok=True)
        owner = self.sockets.lstat()
        if owner.st_uid != os.geteuid() or not stat.S_ISDIR(owner.st_mode):
            raise RuntimeError(
                f"{self.sockets} belongs to someone else; remove it or choose another GROUNDWORK_DATA."
            )

    def secret_key(self) -> str:
        """The development profile's own secret key, made once, readable by the owner alone."""
        file = self.root / "secret-key"
        if not file.exists():
            self.root.mkdir(parents=True, exist_ok=True)
            fresh = self.root / f"secret-key.{os.getpid()}"
            fresh.touch(mode=0o600)
            fresh.write_text(secrets.token_urlsafe(48))
            try:
                os.link(fresh, file)  # the first of two racing processes wins
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        return file.read_text()
