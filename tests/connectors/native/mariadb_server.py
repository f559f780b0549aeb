"""MariaDB on loopback, with one user and a database."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql

from tests.connectors.native.certificates import write_certificate
from tests.connectors.native.processes import free_port, wait_for

USER, PASSWORD = "leser", "pa55-密码"
_PATH = f"{os.defpath}:/usr/sbin:/sbin"
COMMAND = shutil.which("mariadbd", path=_PATH)
IS_ABSENT = COMMAND is None or os.geteuid() != 0


@dataclass(frozen=True, slots=True)
class MariadbServer:
    """Where it is; `socket` lets the operator of the server in."""

    port: int
    socket: Path
    certificate: Path

    def run(self, *statements: str) -> None:
        """Run statements as the operator."""
        connection: Any = pymysql.connect(
            unix_socket=str(self.socket), user="root", charset="utf8mb4", autocommit=True
        )
        with connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


@contextmanager
def mariadb_server() -> Iterator[MariadbServer]:
    """Listens until the end of the block. In a folder through which the user "mysql" may pass."""
    assert COMMAND is not None
    with tempfile.TemporaryDirectory(prefix="mariadb-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        write_certificate(folder)
        for one in (folder, folder / "key.pem"):
            shutil.chown(one, "mysql", "mysql")
        server = MariadbServer(free_port(), folder / "socket", folder / "cert.pem")
        options = ["--no-defaults", "--user=mysql", f"--datadir={folder / 'data'}"]
        subprocess.run(
            ["mariadb-install-db", *options, "--auth-root-authentication-method=normal"],
            check=True, capture_output=True, env={"PATH": _PATH},
        )  # fmt: skip
        listening = [
            f"--socket={server.socket}",
            f"--port={server.port}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            f"--ssl-cert={server.certificate}",
            f"--ssl-key={folder / 'key.pem'}",
        ]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            [COMMAND, *options, *listening], stdout=quiet, stderr=quiet
        ) as process:
            try:
                wait_for(server.port, process)
                server.run(
                    "CREATE DATABASE quelle CHARACTER SET utf8mb4",
                    f"CREATE USER {USER} IDENTIFIED BY '{PASSWORD}'",
                    f"GRANT ALL ON quelle.* TO {USER}",
                )
                yield server
            finally:
                process.terminate()
