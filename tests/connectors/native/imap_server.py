"""Dovecot on loopback: any user with one password, mailboxes as folders of files."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from imapclient import IMAPClient

from tests.connectors.native.certificates import write_certificate
from tests.connectors.native.processes import free_port, wait_for

PASSWORD = "pa55-密码"
COMMAND = shutil.which("dovecot", path=f"{os.defpath}:/usr/sbin:/sbin")
IS_ABSENT = COMMAND is None or os.geteuid() != 0
_CONFIGURATION = """
protocols = imap
listen = 127.0.0.1
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
ssl = yes
ssl_cert = <{folder}/cert.pem
ssl_key = <{folder}/key.pem
disable_plaintext_auth = no
auth_failure_delay = 0
mail_location = maildir:{folder}/mail/%u
maildir_very_dirty_syncs = no
default_process_limit = 20
first_valid_uid = 1
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={folder}/mail/%u
}}
service anvil {{
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
    ssl = yes
  }}
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Junk {{
    special_use = \\Junk
    auto = create
  }}
}}
"""


@dataclass(frozen=True, slots=True)
class ImapServer:
    """Where it is."""

    folder: Path
    port: int
    tls_port: int

    @contextmanager
    def client(self, user: str) -> Iterator[Any]:
        """A client of the test's own."""
        with IMAPClient("127.0.0.1", self.port, ssl=False) as box:
            box.plain_login(user, PASSWORD)
            yield box


def mail(subject: str, body: str, **headers: str) -> bytes:
    """A message."""
    message = EmailMessage()
    given = {
        "From": "王安娜 <ana@example.com>", "To": "bo@example.com",
        "Date": "Sat, 01 Mar 2025 10:00:00 +0800",
        "Message-ID": f"<{abs(hash(subject))}@example.com>",
    }  # fmt: skip
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    for name, value in {**given, "Subject": subject, **named}.items():
        message[name] = value
    message.set_content(body)
    return message.as_bytes()


@contextmanager
def imap_server() -> Iterator[ImapServer]:
    """Listens until the end of the block. In a folder through which the user "mail" may pass."""
    place = tempfile.TemporaryDirectory(prefix="imap-", ignore_cleanup_errors=True)
    with place as name, _running(Path(name)) as server:
        yield server


@contextmanager
def _running(folder: Path) -> Iterator[ImapServer]:
    assert COMMAND is not None
    server = ImapServer(folder, free_port(), free_port())
    (folder / "mail").mkdir()
    folder.chmod(0o755)
    shutil.chown(folder / "mail", "mail", "mail")
    write_certificate(folder)
    configuration = folder / "dovecot.conf"
    configuration.write_text(
        _CONFIGURATION.format(
            folder=folder, password=PASSWORD, port=server.port, tls_port=server.tls_port
        )
    )
    with subprocess.Popen([COMMAND, "-F", "-c", str(configuration)]) as process:
        try:
            wait_for(server.port, process)
            yield server
        finally:
            process.terminate()
