"""Git repositories in a folder and behind git's own HTTP server."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accounts.tenancy import tenant_scope
from config.embedded.paths import DataFolder
from config.errors import AppError, CredentialsError, InvalidInputError, RejectedError
from connectors.base import Checkpoint, Record, Text
from connectors.models import Connection, SyncRun
from connectors.native.git_repo.connector import GitRepoConnector
from connectors.services.opening import open_connector
from tests.connectors.conftest import Syncs
from tests.connectors.native.git_server import TOKEN, GitServer, Repository, git_server

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
Connect = Callable[..., Connection]
FULL, RETRY = SyncRun.Kind.FULL, SyncRun.Kind.RETRY


def counts(run: SyncRun) -> tuple[int, int, int, int, int]:
    return run.inserted, run.updated, run.kept, run.deleted, run.failed


@pytest.fixture(autouse=True)
def places(settings: Any, tmp_path: Path) -> None:
    settings.GROUNDWORK_DATA = DataFolder(tmp_path / "data")
    settings.GROUNDWORK_LOCAL_FOLDERS = [str(tmp_path / "repos")]
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Two files in one commit."""
    made = Repository(tmp_path / "repos" / "birds")
    made.write("README.md", "# Herons\n\nHerons wade.\n")
    made.write("docs/苍鹭.md", "# 苍鹭\n\n苍鹭涉水。\n")
    made.commit("Begin: 开始")
    return made


@pytest.fixture
def server(repository: Repository) -> Iterator[GitServer]:
    with git_server(repository.path.parent) as running:
        yield running


def reading(connect: Connect, repository: Repository, **config: Any) -> Connection:
    return connect("git-repo", config={"repository": str(repository.path), **config})


def test_files_become_documents_with_their_facts(
    connect: Connect, syncs: Syncs, repository: Repository
) -> None:
    run = syncs.run(reading(connect, repository))
    assert (run.status, counts(run)) == ("succeeded", (2, 0, 0, 0, 0))
    documents = syncs.documents()
    assert set(documents) == {"main:README.md", "main:docs/苍鹭.md"}
    heron = documents["main:docs/苍鹭.md"]
    assert (heron.status, heron.title, heron.author) == ("ready", "苍鹭.md", "安娜")
    assert heron.breadcrumbs == ["birds", "docs"]
    assert heron.source_updated_at is not None
    assert heron.metadata["branch"] == "main"


def test_a_later_run_reads_what_differs(
    connect: Connect, syncs: Syncs, repository: Repository
) -> None:
    connection = reading(connect, repository)
    syncs.run(connection)
    run = syncs.run(connection)
    assert counts(run) == (0, 0, 0, 0, 0), "nothing has happened"
    repository.write("README.md", "# Storks\n")
    repository.write("new.txt", "Cranes dance.")
    repository.git("mv", "docs/苍鹭.md", "docs/鹤.md")
    commit = repository.commit()
    run = syncs.run(connection)
    assert counts(run) == (2, 1, 0, 1, 0)
    assert set(syncs.documents()) == {"main:README.md", "main:new.txt", "main:docs/鹤.md"}
    assert syncs.fresh(connection).cursor == {"commits": {"main": commit}}


def test_a_full_run_reads_no_content_again(
    connect: Connect, syncs: Syncs, repository: Repository, monkeypatch: Any
) -> None:
    connection = reading(connect, repository)
    syncs.run(connection)
    monkeypatch.setattr("connectors.native.git_repo.connector._opened", pytest.fail)
    run = syncs.run(connection, kind=FULL)
    assert (run.status, counts(run)) == ("succeeded", (0, 0, 2, 0, 0))


def test_rewritten_history_is_listed_whole(
    connect: Connect, syncs: Syncs, repository: Repository
) -> None:
    repository.write("late.md", "Late.")
    repository.commit()
    connection = reading(connect, repository)
    syncs.run(connection)
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    repository.write("other.md", "Other.")
    repository.commit()
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("succeeded", (1, 0, 2, 1, 0))
    assert "main:late.md" not in syncs.documents()


def test_branches_are_kept_apart(connect: Connect, syncs: Syncs, repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "release/1")
    repository.write("README.md", "# Release\n")
    repository.commit()
    repository.git("checkout", "--quiet", "-b", "draft")
    repository.git("checkout", "--quiet", "main")
    connection = reading(connect, repository, branches=["main", "release/*"])
    syncs.run(connection)
    documents = syncs.documents()
    assert set(documents) == {
        "main:README.md", "main:docs/苍鹭.md", "release/1:README.md", "release/1:docs/苍鹭.md",
    }  # fmt: skip
    assert documents["release/1:docs/苍鹭.md"].breadcrumbs == ["birds", "release/1", "docs"]
    repository.git("branch", "--quiet", "-D", "release/1")
    run = syncs.run(connection)
    assert counts(run) == (0, 0, 2, 2, 0), "the branch is gone with its files"


def test_a_branch_that_is_nowhere_deletes_nothing(
    connect: Connect, syncs: Syncs, repository: Repository
) -> None:
    connection = reading(connect, repository, branches=["main"])
    syncs.run(connection)
    repository.git("branch", "-m", "trunk")
    run = syncs.run(connection)
    assert (run.status, run.error_code) == ("failed", "remote_rejected")
    assert "trunk" in run.error
    assert len(syncs.documents()) == 2


def test_what_is_no_text_or_no_file_is_left_out(
    connect: Connect, syncs: Syncs, repository: Repository, tmp_path: Path
) -> None:
    other = Repository(tmp_path / "repos" / "other")
    other.commit()
    repository.write("image.bin", b"a\x00b")
    repository.write("big.txt", "x" * 3000)
    repository.write("paper.pdf", b"%PDF-1.4\n\x00")
    repository.write("vendor/lib.js", "let a;")
    repository.write("grows.txt", "Small.")
    repository.write("turns.txt", "A file.")
    (repository.path / "link.md").symlink_to("/etc/passwd")
    repository.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path)
    )
    repository.commit()
    connection = reading(connect, repository, max_file_kb=1, exclude=["vendor/*", ".gitmodules"])
    syncs.run(connection)
    assert {name.removeprefix("main:") for name in syncs.items()} == {
        "README.md", "docs/苍鹭.md", "grows.txt", "turns.txt", "paper.pdf",
    }  # fmt: skip
    repository.write("grows.txt", "x" * 2000)
    (repository.path / "turns.txt").unlink()
    (repository.path / "turns.txt").symlink_to("README.md")
    repository.commit()
    run = syncs.run(connection)
    assert run.deleted == 2
    assert "main:grows.txt" not in syncs.items()


def test_odd_names_are_kept_apart(
    connect: Connect, syncs: Syncs, repository: Repository, keeper: Any
) -> None:
    names = [b"new\nline.txt", b"tab\t.txt", b"caf\xe9.txt", b"-rf.txt", b"a:b.txt", b"  s .txt"]
    for name in names:
        repository.write(name, name.decode("latin-1") + " is odd.")
    repository.commit()
    connection = reading(connect, repository)
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("succeeded", 8)
    assert "main:caf\\xe9.txt" in syncs.documents()
    with tenant_scope(keeper.tenant_id):
        connection.items.filter(external_id__contains="caf").update(status="failed", version="")
    run = syncs.run(connection, kind=RETRY)
    assert (run.status, run.kept) == ("succeeded", 1)


def test_commits_become_documents(connect: Connect, syncs: Syncs, repository: Repository) -> None:
    connection = reading(connect, repository, commits=2)
    syncs.run(connection)
    repository.write("a.md", "A.")
    sha = repository.commit("Add a\n\nBecause 因为.")
    run = syncs.run(connection)
    assert run.inserted == 2
    document = syncs.documents()[f"commit {sha}"]
    assert (document.title, document.author) == ("Add a", "安娜")
    repository.commit("Third")
    syncs.run(connection, kind=FULL)
    found = [name for name in syncs.documents() if name.startswith("commit ")]
    assert len(found) == 2, "the two last"
    records = [one for one in open_connector(connection).pull({}) if isinstance(one, Record)]
    body = next(one.body for one in records if one.external_id == f"commit {sha}")
    assert isinstance(body, Text)
    assert "Because 因为." in body.text
    assert "a.md" in body.text


def test_an_interrupted_run_reads_nothing_twice(
    connect: Connect, syncs: Syncs, repository: Repository, monkeypatch: Any
) -> None:
    repository.write("z.md", "Last.")
    repository.commit()
    monkeypatch.setattr("connectors.native.git_repo.connector._PAGE", 2)
    opened = GitRepoConnector._events

    def broken(*arguments: Any) -> Iterator[Any]:
        for number, event in enumerate(opened(*arguments)):
            if number == 2:
                raise RejectedError("Broken off.")
            yield event

    monkeypatch.setattr(GitRepoConnector, "_events", broken)
    connection = reading(connect, repository)
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("failed", 2)
    monkeypatch.setattr(GitRepoConnector, "_events", opened)
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("succeeded", (1, 0, 2, 0, 0))


def test_a_blob_that_cannot_be_read_fails_alone(
    connect: Connect, syncs: Syncs, repository: Repository, monkeypatch: Any
) -> None:
    blob = repository.git("rev-parse", "HEAD:README.md")
    connection = reading(connect, repository)
    from connectors.native.git_repo import connector

    opened = connector._opened

    def failing(git: Any, sha: str) -> Any:
        if sha == blob:
            raise RejectedError("Unreadable.")
        return opened(git, sha)

    monkeypatch.setattr(connector, "_opened", failing)
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("partial", (1, 0, 0, 0, 1))
    monkeypatch.setattr(connector, "_opened", opened)
    run = syncs.run(connection, kind=RETRY)
    assert (run.status, counts(run)) == ("succeeded", (1, 0, 0, 0, 0))


def test_a_source_that_is_down_deletes_nothing(
    connect: Connect, syncs: Syncs, repository: Repository
) -> None:
    connection = reading(connect, repository)
    syncs.run(connection)
    away = repository.path.with_name("away")
    repository.path.rename(away)
    run = syncs.run(connection, kind=FULL)
    assert run.status == "failed"
    assert len(syncs.documents()) == 2
    away.rename(repository.path)
    assert syncs.run(connection).status == "succeeded"


def test_a_lost_or_damaged_mirror_is_made_anew(
    connect: Connect, syncs: Syncs, repository: Repository, tmp_path: Path
) -> None:
    connection = reading(connect, repository)
    syncs.run(connection)
    sources = tmp_path / "data" / "sources" / str(connection.id)
    for path in sources.rglob("*.pack"):
        path.chmod(0o600)
        path.write_bytes(b"damaged")
    for path in sources.rglob("objects/??/*"):
        path.chmod(0o600)
        path.write_bytes(b"damaged")
    repository.write("a.md", "A.")
    repository.commit()
    assert syncs.run(connection).status == "succeeded"
    assert "main:a.md" in syncs.documents()
    shutil.rmtree(sources)
    repository.write("b.md", "B.")
    repository.commit()
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("succeeded", 1)


def test_over_http_with_a_token(
    connect: Connect, syncs: Syncs, repository: Repository, server: GitServer, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    connection = connect(
        "git-repo", config={"repository": f"{server.url}/birds"},
        auth_method="token", credentials={"token": TOKEN},
    )  # fmt: skip
    assert open_connector(connection).check() == "birds: main"
    run = syncs.run(connection)
    assert (run.status, run.inserted) == ("succeeded", 2)
    repository.write("a.md", "A.")
    repository.commit()
    assert counts(syncs.run(connection)) == (1, 0, 0, 0, 0)
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    ("status", "error", "run_status"),
    [(401, "remote_credentials", "failed"), (404, "remote_rejected", "failed"),
     (503, "", "queued"), (429, "", "queued"), (302, "remote_rejected", "failed")],
)  # fmt: skip
def test_what_the_server_answers_decides_what_comes_next(
    connect: Connect, syncs: Syncs, server: GitServer, status: int, error: str, run_status: str
) -> None:
    connection = connect(
        "git-repo", config={"repository": f"{server.url}/birds"},
        auth_method="token", credentials={"token": TOKEN},
    )  # fmt: skip
    syncs.run(connection)
    server.status, server.location = status, "http://127.0.0.1:1/elsewhere"
    run = syncs.run(connection, kind=FULL)
    assert run.status == run_status
    assert run.error_code == error or run_status == "queued"
    assert TOKEN not in run.error
    assert len(syncs.documents()) == 2


def test_wrong_credentials_are_told_by_the_check(connect: Connect, server: GitServer) -> None:
    connection = connect(
        "git-repo", config={"repository": f"{server.url}/birds"},
        auth_method="token", credentials={"token": "wrong-token"},
    )  # fmt: skip
    with pytest.raises(CredentialsError) as caught:
        open_connector(connection).check()
    assert "wrong-token" not in caught.value.message


@pytest.mark.parametrize(
    "address",
    [
        "ext::sh -c touch% /tmp/owned", "file:///etc", "/etc", "../birds", "~root", "https://", "git://a.b/c",
        "http://example.com/a", "https://user:pw@example.com/a", "--upload-pack=touch", "ssh://-oProxy/x",
        "https://[::1", "",
    ],
)  # fmt: skip
def test_addresses_that_are_refused(connect: Connect, address: str) -> None:
    connection = connect("git-repo", config={"repository": address})
    with pytest.raises(InvalidInputError):
        open_connector(connection).check()


@pytest.mark.parametrize(
    "address", ["https://localhost/a", "https://[::1]/a", "git@localhost:a/b", "https://10.0.0.8/x"]
)
def test_private_networks_are_closed(connect: Connect, address: str) -> None:
    connection = connect("git-repo", config={"repository": address})
    with pytest.raises(AppError, match="private network"):
        open_connector(connection).check()


def test_the_repository_in_the_folder_commands_nothing(
    connect: Connect, syncs: Syncs, repository: Repository, tmp_path: Path
) -> None:
    owned = tmp_path / "owned"
    command = f"touch {owned}"
    for name in ("core.fsmonitor", "uploadpack.packObjectsHook", "core.sshCommand", "diff.external",
                 "core.pager", "gpg.program"):  # fmt: skip
        repository.git("config", name, command)
    for name in ("post-checkout", "reference-transaction", "pre-auto-gc"):
        hook = repository.path / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\n{command}\n")
        hook.chmod(0o755)
    repository.write(".gitattributes", "* diff=x filter=x\n")
    repository.git("config", "diff.x.textconv", command)
    repository.commit()
    owned.unlink(missing_ok=True)
    run = syncs.run(reading(connect, repository))
    assert run.status == "succeeded"
    assert not owned.exists()


def test_web_pages_of_known_hosts() -> None:
    from connectors.native.git_repo.addresses import Place

    place = Place("ssh://git@github.com/acme/birds.git", "ssh", "github.com", 22)
    assert place.name == "birds"
    assert place.file_page("main", "docs/苍 鹭.md") == (
        "https://github.com/acme/birds/blob/main/docs/%E8%8B%8D%20%E9%B9%AD.md"
    )
    assert place.commit_page("abc") == "https://github.com/acme/birds/commit/abc"
    gitlab = Place("https://gitlab.acme.example/a/b/c.git", "https", "gitlab.acme.example", 443)
    assert gitlab.file_page("x/y", "a.md") == "https://gitlab.acme.example/a/b/c/-/blob/x/y/a.md"
    assert Place("/srv/birds/.git", "file", "", 0).file_page("main", "a") == ""


def test_checkpoints_are_positions_to_go_on_from(connect: Connect, repository: Repository) -> None:
    repository.git("branch", "other")
    connection = reading(connect, repository, branches=["*"])
    events = list(open_connector(connection).pull({}))
    assert isinstance(events[-1], Checkpoint)
    first = events[-1].cursor
    repository.write("a.md", "A.")
    repository.commit()
    repository.git("branch", "-f", "other", "main")
    positions = [e for e in open_connector(connection).pull(first) if isinstance(e, Checkpoint)]
    assert positions[0].cursor["commits"]["other"] == first["commits"]["other"]
    rest = list(open_connector(connection).pull(positions[0].cursor))
    assert getattr(rest[0], "external_id", "") == "other:a.md"
    assert list(open_connector(connection).pull(positions[-1].cursor)) == [positions[-1]]
