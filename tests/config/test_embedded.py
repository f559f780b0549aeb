"""The embedded servers, for real: started, killed, moved into awkward folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from config.embedded.lease import running_servers
from config.embedded.paths import DataFolder
from config.embedded.postgres import EmbeddedPostgres
from config.embedded.valkey import EmbeddedValkey
from config.env import child_environment

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys, time
from pathlib import Path
from config.embedded.lease import running_servers
from config.embedded.paths import DataFolder
with running_servers(DataFolder(Path(sys.argv[1])), database=True, broker=True):
    print("up", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A short folder that an unprivileged database can reach, unlike pytest's own under a closed parent."""
    folder = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    kill_everything(DataFolder(folder / "data"))  # what a test has left without a holder
    shutil.rmtree(folder, ignore_errors=True)


def hold(folder: Path, *prefix: str) -> subprocess.Popen[str]:
    """Another process that keeps the servers up until its input ends."""
    holder = subprocess.Popen(
        [*prefix, sys.executable, "-c", HOLDER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
        env=child_environment(PYTHONPATH=str(CHECKOUT)),
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "up\n"
    return holder


def release(holder: subprocess.Popen[str]) -> None:
    """Let it end by itself."""
    assert holder.communicate(timeout=30)[0] == ""
    assert holder.returncode == 0


def remember(data: DataFolder, value: str) -> None:
    """Write to both servers."""
    with psycopg.connect(data.database_url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS note (value text)")
        connection.execute("INSERT INTO note VALUES (%s)", [value])
    with redis.Redis.from_url(data.broker_url()) as client:
        client.rpush("note", value)
        client.execute_command("WAITAOF", 1, 0, 5000)


def recalled(data: DataFolder) -> tuple[list[str], list[str]]:
    """What both servers hold."""
    with psycopg.connect(data.database_url()) as connection:
        rows = [row[0] for row in connection.execute("SELECT value FROM note ORDER BY value")]
    with redis.Redis.from_url(data.broker_url(), decode_responses=True) as client:
        notes = client.lrange("note", 0, -1)
    assert isinstance(notes, list)
    return rows, sorted(notes)


def is_up(data: DataFolder) -> tuple[bool, bool]:
    """Database, broker."""
    return EmbeddedPostgres(data).is_running(), EmbeddedValkey(data).is_running()


def processes_of(data: DataFolder) -> list[int]:
    """Every server process of one folder, found by its working folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() in {data.postgres, data.valkey}:
                found.append(int(process.name))
        except OSError:
            continue
    return found


def kill_everything(data: DataFolder) -> None:
    """As the kernel does when memory runs out, or a machine when its power goes."""
    while pids := processes_of(data):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_data_survives_a_stop_and_starts_are_quick(place: Path) -> None:
    data = DataFolder(place / "data")
    for turn, seconds in enumerate((20.0, 5.0)):
        began = time.monotonic()
        with running_servers(data, database=True, broker=True):
            assert time.monotonic() - began < seconds
            remember(data, str(turn))
        assert is_up(data) == (False, False)
    with running_servers(data, database=True, broker=True):
        assert recalled(data) == (["0", "1"], ["0", "1"])


def test_the_first_start_after_a_kill_of_everything_works(place: Path) -> None:
    data = DataFolder(place / "data")
    holder = hold(data.root)
    remember(data, "kept")
    busy = psycopg.connect(data.database_url())
    busy.execute("SELECT 1")
    holder.kill()
    kill_everything(data)
    holder.communicate()
    busy.close()
    assert is_up(data) == (False, False)
    with running_servers(data, database=True, broker=True):
        assert recalled(data) == (["kept"], ["kept"])


def test_a_start_over_backends_of_a_killed_postmaster_works(place: Path) -> None:
    data = DataFolder(place / "data")
    holder = hold(data.root)
    remember(data, "kept")
    pid = int((data.postgres / "postmaster.pid").read_text().split("\n")[0])
    busy = psycopg.connect(data.database_url())
    os.kill(pid, signal.SIGKILL)
    with running_servers(data, database=True, broker=True):
        assert recalled(data) == (["kept"], ["kept"])
    busy.close()
    holder.kill()
    holder.communicate()


def test_a_stale_pid_that_belongs_to_another_process_is_no_obstacle(place: Path) -> None:
    data = DataFolder(place / "data")
    with running_servers(data, database=True, broker=False):
        text = (data.postgres / "postmaster.pid").read_text()
    stale = "\n".join([str(os.getppid()), *text.split("\n")[1:]])
    (data.postgres / "postmaster.pid").write_text(stale)
    (data.postgres / "postmaster.pid").chmod(0o644)
    with running_servers(data, database=True, broker=False):
        assert EmbeddedPostgres(data).is_running()


def test_an_interrupted_first_start_leaves_no_half_cluster(place: Path) -> None:
    data = DataFolder(place / "data")
    (data.root / "postgres.new" / "base").mkdir(parents=True)
    with running_servers(data, database=True, broker=False):
        assert EmbeddedPostgres(data).is_running()


def test_two_folders_run_side_by_side(place: Path) -> None:
    one, two = DataFolder(place / "one"), DataFolder(place / "two")
    with (
        running_servers(one, database=True, broker=True),
        running_servers(two, database=True, broker=True),
    ):
        remember(one, "one")
        remember(two, "two")
        assert recalled(one) == (["one"], ["one"])
        assert recalled(two) == (["two"], ["two"])


def test_the_last_holder_to_leave_stops_the_servers(place: Path) -> None:
    data = DataFolder(place / "data")
    with running_servers(data, database=True, broker=True):
        other = hold(data.root)
        assert is_up(data) == (True, True)
    assert is_up(data) == (True, True)
    release(other)
    assert is_up(data) == (False, False)


def test_a_killed_holder_does_not_count(place: Path) -> None:
    data = DataFolder(place / "data")
    with running_servers(data, database=True, broker=True):
        other = hold(data.root)
        other.kill()
        other.communicate()
        assert is_up(data) == (True, True)
    assert is_up(data) == (False, False)


def test_a_closed_parent_folder_keeps_its_mode(place: Path) -> None:
    closed = place / "home"
    closed.mkdir(mode=0o700)
    data = DataFolder(closed / "data")
    with running_servers(data, database=True, broker=True):
        remember(data, "kept")
        assert recalled(data) == (["kept"], ["kept"])
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_a_strict_umask_is_no_obstacle(place: Path) -> None:
    data = DataFolder(place / "data")
    before = os.umask(0o077)
    try:
        with running_servers(data, database=True, broker=True):
            assert is_up(data) == (True, True)
    finally:
        os.umask(before)


@pytest.mark.parametrize("name", ["x" * 120, "with space, 中文 & 'quote'"])
def test_awkward_paths_work(place: Path, name: str) -> None:
    data = DataFolder(place / name)
    with running_servers(data, database=True, broker=True):
        remember(data, "kept")
        assert recalled(data) == (["kept"], ["kept"])
        assert len(str(data.sockets / "pg" / ".s.PGSQL.5432.lock")) < 108
    shutil.rmtree(data.sockets, ignore_errors=True)


def test_a_socket_folder_of_someone_else_is_refused(place: Path) -> None:
    data = DataFolder(place / ("x" * 120))
    elsewhere = place / "trap"
    elsewhere.mkdir()
    data.sockets.symlink_to(elsewhere)
    try:
        with pytest.raises(RuntimeError, match="belongs to someone else"):
            data.create()
    finally:
        data.sockets.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")
def test_an_ordinary_user_can_run_them(place: Path) -> None:
    become = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
    probe = [*become, sys.executable, "-c", "import config.embedded.lease, psycopg"]
    if subprocess.run(probe, check=False, cwd=CHECKOUT, capture_output=True).returncode:
        pytest.skip("this Python lies where an ordinary user cannot reach it")
    home = place / "home"
    home.mkdir(mode=0o700)
    os.chown(home, 65534, 65534)
    release(hold(home / "data", *become))
    assert (home / "data" / "postgres" / "PG_VERSION").stat().st_uid == 65534


def test_outside_servers_are_left_alone(place: Path) -> None:
    data = DataFolder(place / "data")
    with running_servers(data, database=False, broker=False):
        assert not data.root.exists()
