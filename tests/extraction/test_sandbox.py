"""The child process: same outcome as in process, and bounds that hold."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from knowledge.extraction import worker
from knowledge.extraction.base import (
    Block,
    BlockKind,
    Coverage,
    Extracted,
    ExtractionError,
    Fault,
    Limits,
    Source,
)
from knowledge.extraction.sandbox import extract_file
from knowledge.extraction.wire import dump_error, dump_extracted, load_result
from tests.extraction.reading import read

pytestmark = pytest.mark.slow


def _write(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def _fault(path: Path, limits: Limits | None = None, filename: str = "mine.txt") -> ExtractionError:
    with pytest.raises(ExtractionError) as caught:
        extract_file(path, filename, limits)
    assert filename in caught.value.message
    return caught.value


def test_outcome_is_that_of_the_extractor(tmp_path: Path) -> None:
    data = "Liste\nName;Ort\nJörg;Köln\n李;北京\n"
    path = _write(tmp_path, "upload-17", data)
    assert extract_file(path, "liste.csv") == read("csv", data, "liste.csv")


def test_refusal_comes_through(tmp_path: Path) -> None:
    error = _fault(_write(tmp_path, "x", b"\x89PNG\r\n\x1a\n"), filename="scan.png")
    assert error.fault is Fault.UNSUPPORTED
    assert error.code == "unsupported"
    assert error.http_status == 422


def test_file_without_text(tmp_path: Path) -> None:
    assert _fault(_write(tmp_path, "x", "\n \n")).fault is Fault.NO_TEXT


def test_file_beyond_the_size_limit(tmp_path: Path) -> None:
    error = _fault(_write(tmp_path, "x", "a" * 2_000_000), Limits(max_bytes=1_000_000))
    assert error.fault is Fault.TOO_LARGE
    assert "has 2 MB; at most 1 MB" in error.message


def test_slow_file_is_given_up(tmp_path: Path) -> None:
    path = _write(tmp_path, "x", "<p>" * 2_000_000)
    started = time.monotonic()
    error = _fault(path, Limits(timeout_s=0.2), "slow.html")
    assert error.fault is Fault.TIMEOUT
    assert "took longer than 0.2 seconds" in error.message
    assert time.monotonic() - started < 5


def test_hungry_file_is_given_up(tmp_path: Path) -> None:
    path = _write(tmp_path, "x", b"seventy words " * 5_000_000)
    error = _fault(path, Limits(max_memory_bytes=160 * 2**20), "big.txt")
    assert error.fault is Fault.TOO_LARGE
    assert "takes more memory than is allowed" in error.message


def test_missing_file_is_the_callers_fault(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        extract_file(tmp_path / "absent", "a.txt")


def test_name_cannot_steer_the_child(tmp_path: Path) -> None:
    path = _write(tmp_path, "x", "fine words")
    for name in ("--help", "-c", "a\x00b", "a\nb", "../../etc/passwd", "ü" * 200):
        assert extract_file(path, name).text == "fine words"


def test_unexpected_failure_is_corrupt_and_logged_without_content(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken:
        def extract(self, _source: Source, _limits: Limits) -> Extracted:
            raise KeyError("secret words of the file")

    monkeypatch.setattr(worker, "load_extractor", lambda _name: Broken())
    with pytest.raises(ExtractionError) as caught:
        worker.extract_source(Source(io.BytesIO(b"x"), "a.txt", 1), Limits())
    assert caught.value.fault is Fault.CORRUPT
    assert "secret" not in caught.value.message
    assert capsys.readouterr().err == "builtins.KeyError while reading a file\n"


def test_memory_and_depth_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for failure in (MemoryError, RecursionError):

        class Broken:
            error = failure

            def extract(self, _source: Source, _limits: Limits) -> Extracted:
                raise self.error

        monkeypatch.setattr(worker, "load_extractor", lambda _name, broken=Broken: broken())
        with pytest.raises(ExtractionError) as caught:
            worker.extract_source(Source(io.BytesIO(b"x"), "a.txt", 1), Limits())
        assert caught.value.fault is Fault.TOO_LARGE


def test_wire_keeps_every_field() -> None:
    extracted = Extracted(
        text="| a |\n| 李 |",
        blocks=(
            Block(BlockKind.TABLE_HEADER, 0, 5, page=2, sheet="S", row=1, line=3),
            Block(BlockKind.TABLE_ROW, 6, 11, level=0, sheet="S", row=2, table_header="| a |"),
        ),
        coverage=Coverage("rows", 3, 2),
        title="T",
        warnings=("w",),
        metadata={"author": "A"},
    )
    assert load_result(dump_extracted(extracted)) == extracted


def test_wire_stores_a_long_header_once() -> None:
    row = Block(BlockKind.TABLE_ROW, 0, 1, table_header="h" * 10_000)
    extracted = Extracted("x" * 100, (row,) * 100, Coverage("rows", 1, 1))
    assert len(dump_extracted(extracted)) < 20_000


@pytest.mark.parametrize("data", [b"", b"Killed", b"{}", b"[]", b'{"fault": "x", "message": ""}'])
def test_wire_refuses_what_is_no_result(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"not the result|Expecting value|not a valid Fault"):
        load_result(data)


def test_wire_carries_refusals() -> None:
    with pytest.raises(ExtractionError) as caught:
        load_result(dump_error(ExtractionError(Fault.EMPTY, "a.txt is empty.")))
    assert (caught.value.fault, caught.value.message) == (Fault.EMPTY, "a.txt is empty.")
