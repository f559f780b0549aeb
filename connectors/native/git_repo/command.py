"""The git command line in an environment of its own, for repositories that nobody vouches for.

The command line and not dulwich: it reads histories of any size without holding them in memory, knows every
protocol version and pack format, and can be confined. What confines it: no configuration but ours, no hooks,
no prompts, no helpers, no redirects, one allowed protocol, an address that was checked and is pinned, secrets
in the environment of the one process only, an end after some time without progress. Nothing is checked out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

from config.errors import CredentialsError, RejectedError, RemoteError, TransientError

_CONFIG = """\
[core]
	hooksPath = /dev/null
	fsmonitor = false
	attributesFile = /dev/null
	excludesFile = /dev/null
	bigFileThreshold = {big_file}
[credential]
	helper =
[diff]
	renames = false
[fetch]
	recurseSubmodules = false
[gc]
	autoDetach = false
[http]
	followRedirects = false
	lowSpeedLimit = 1000
	lowSpeedTime = 60
[i18n]
	logOutputEncoding = UTF-8
[log]
	showSignature = false
[safe]
	directory = *
"""
_LOOK_S = 0.25
_OURS_S = 600.0  # for what needs no network
_REFUSED = re.compile(
    r"authentication failed|could not read (?:username|password)|permission denied \(|access denied"
    r"|returned error: 40[13]\b|terminal prompts disabled",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"not found|does not exist|does not appear to be a git repo|not a git repository|no such (?:file|repo)"
    r"|returned error: 4(?:04|10)\b",
    re.IGNORECASE,
)
_MOVED = re.compile(r"redirect|returned error: 30\d\b", re.IGNORECASE)
_BUSY = re.compile(
    r"could not resolve|connection (?:refused|reset|timed out|closed)|failed to connect|timed? ?out"
    r"|early eof|hung up|rpc failed|too slow|returned error: (?:5\d\d|429)\b|unexpected disconnect"
    r"|host is down|unreachable|couldn't connect",
    re.IGNORECASE,
)
_DAMAGED = re.compile(
    r"corrupt|(?:bad|missing) (?:object|blob|tree)|object file .* is empty|unable to (?:read|unpack)"
    r"|inflate: |invalid sha1 pointer|packfile .* (?:cannot|does not)|not a git repository: "
    r"|did not send all necessary objects",
    re.IGNORECASE,
)


class DamagedMirrorError(TransientError):
    """What was kept between runs could not be read and is removed; it can be fetched anew."""


class NothingThereError(RejectedError):
    """No such repository, or not for who asks, or one without a commit."""


@dataclass(frozen=True, slots=True)
class Remote:
    """Where a repository is and how one gets in. `pinned` is the checked IP address of its host."""

    address: str  # what git is given: https://…, ssh://… or an absolute path
    protocol: str  # https, http, ssh or file
    host: str = ""
    port: int = 0
    pinned: str = ""
    header: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Git:
    """Runs git on one bare repository in a folder of the connection's own."""

    folder: Path
    pause: Callable[[float], None]
    big_file: int

    @property
    def repository(self) -> Path:
        """The mirror."""
        return self.folder / "mirror.git"

    def prepare(self) -> None:
        """Make folder, configuration and an empty mirror."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        written = self.folder / f"config.{os.getpid()}"
        written.write_text(_CONFIG.format(big_file=self.big_file))
        written.replace(self.folder / "config")
        if not (self.repository / "HEAD").exists():
            shutil.rmtree(self.repository, ignore_errors=True)
            self._run(["init", "--quiet", "--bare", str(self.repository)], {}, _OURS_S).close()

    def unlock(self) -> None:
        """Remove the locks that a killed process has left. A connection has one run at a time."""
        for lock in self.repository.rglob("*.lock"):
            lock.unlink(missing_ok=True)

    def read(self, *arguments: str, given: bytes = b"") -> bytes:
        """What a command on the mirror prints."""
        with self.open(*arguments, given=given) as output:
            return output.read()

    def open(self, *arguments: str, given: bytes = b"") -> BinaryIO:
        """The same as a file, to be closed."""
        command = [f"--git-dir={self.repository}", *arguments]
        return self._run(command, {"GIT_ALLOW_PROTOCOL": ""}, _OURS_S, given)

    def succeeds(self, *arguments: str) -> bool:
        """Whether a command on the mirror ends well."""
        try:
            self.read(*arguments)
        except RemoteError:
            return False
        return True

    def ask(self, remote: Remote, *arguments: str, timeout_s: float) -> bytes:
        """What a command that talks to the remote prints."""
        with tempfile.TemporaryDirectory(prefix="groundwork-git-") as private:
            variables = self._variables(remote, Path(private))
            command = [f"--git-dir={self.repository}", *arguments]
            with self._run(command, variables, timeout_s) as output:
                return output.read()

    def _variables(self, remote: Remote, private: Path) -> dict[str, str]:
        """Secrets and the pinned address, as environment variables or a file nobody else can read."""
        variables = {"GIT_ALLOW_PROTOCOL": remote.protocol}
        if remote.protocol == "ssh":
            variables["GIT_SSH_COMMAND"] = self._ssh(remote, private)
            variables["GIT_SSH_VARIANT"] = "ssh"
        options = []
        if remote.header:
            place = f"http.{remote.protocol}://{_bracketed(remote.host)}:{remote.port}/"
            options.append((f"{place}.extraHeader", f"Authorization: {remote.header}"))
        if remote.pinned and remote.protocol != "ssh":
            pin = f"{remote.host}:{remote.port}:{_bracketed(remote.pinned)}"
            options.append(("http.curloptResolve", pin))
        for number, (name, value) in enumerate(options):
            variables[f"GIT_CONFIG_KEY_{number}"] = name
            variables[f"GIT_CONFIG_VALUE_{number}"] = value
        return {**variables, "GIT_CONFIG_COUNT": str(len(options))}

    def _ssh(self, remote: Remote, private: Path) -> str:
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": "20",
            "IdentitiesOnly": "yes",
            "StrictHostKeyChecking": "accept-new",
            "UserKnownHostsFile": str(self.folder / "known_hosts"),
            "ProxyCommand": "none",
            "ServerAliveInterval": "15",
        }
        if remote.pinned:
            options |= {"HostName": remote.pinned, "HostKeyAlias": remote.host}
        command = ["ssh", "-F", os.devnull, "-a", "-x"]
        if remote.private_key:
            key = private / "key"
            key.touch(mode=0o600)
            key.write_text(remote.private_key.strip() + "\n")
            command += ["-i", str(key)]
        command += [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return shlex.join(command)

    def _run(
        self, command: Sequence[str], more: Mapping[str, str], timeout_s: float, given: bytes = b""
    ) -> BinaryIO:
        """Its output from the beginning. Raises the `RemoteError` that its complaint stands for."""
        program = shutil.which("git")
        if program is None:
            raise RejectedError("The server has no git. The operator can install it.")
        with tempfile.TemporaryFile() as entered, tempfile.TemporaryFile() as complaint:
            entered.write(given)
            entered.seek(0)
            output = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - the caller's to close
            try:
                process = subprocess.Popen(  # noqa: S603 - no shell; arguments are ours or checked
                    [program, *command],
                    stdin=entered, stdout=output, stderr=complaint, start_new_session=True,
                    cwd=self.folder, env=self._environment(program, more),
                )  # fmt: skip
                code = self._wait(process, timeout_s)
                if code:
                    complaint.seek(0)
                    self._fail(complaint.read(20_000).decode(errors="replace"))
            except BaseException:
                output.close()
                raise
            output.seek(0)
            return output

    def _fail(self, complaint: str) -> NoReturn:
        error = _error_of(complaint)
        if isinstance(error, DamagedMirrorError):
            shutil.rmtree(self.repository, ignore_errors=True)
        raise error

    def _environment(self, program: str, more: Mapping[str, str]) -> dict[str, str]:
        return {
            "PATH": f"{Path(program).parent}:{os.defpath}",
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(self.folder / "config"),
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            **more,
        }

    def _wait(self, process: subprocess.Popen[bytes], timeout_s: float) -> int:
        """The exit code. Ends the process with its children when the run ends or time is up."""
        until = time.monotonic() + timeout_s
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(_LOOK_S)
                self.pause(0)
                if time.monotonic() > until:
                    raise TransientError(f"git took more than {timeout_s / 60:.0f} minutes.")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def basic_header(username: str, password: str) -> str:
    """What proves who asks by HTTP Basic."""
    return f"Basic {b64encode(f'{username}:{password}'.encode()).decode()}"


def _error_of(complaint: str) -> RemoteError:
    """By what git complains of. What the server says is not repeated: it may repeat secrets."""
    own = [line for line in complaint.splitlines() if not line.startswith("remote:")]
    text = "\n".join(own)
    fatal = next((line[7:] for line in reversed(own) if line.startswith("fatal: ")), "")
    if "Host key verification failed" in text:
        return RejectedError("The server shows another host key than before.")
    kinds: tuple[tuple[re.Pattern[str], RemoteError], ...] = (
        (_DAMAGED, DamagedMirrorError("The local copy of the repository was damaged.")),
        (_BUSY, TransientError("The repository cannot be reached at the moment.")),
        (_REFUSED, CredentialsError("The repository does not accept the credentials.")),
        (_MOVED, RejectedError("The repository has moved. Give its new address.")),
        (_MISSING, NothingThereError("There is no such repository, or not for these credentials.")),
    )
    for pattern, error in kinds:
        if pattern.search(text):
            return error
    return RejectedError(f"git cannot do it: {fatal[:200] or 'it did not say why'}.")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
