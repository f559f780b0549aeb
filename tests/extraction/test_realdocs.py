"""Documents that nobody here wrote: what each must give, must not give, or must be refused for."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from knowledge.extraction.base import Extracted, ExtractionError, Fault, Limits
from knowledge.extraction.sandbox import extract_file
from tests.extraction.reading import check_blocks

pytestmark = [pytest.mark.shared, pytest.mark.slow]

_FOLDER = Path(__file__).resolve().parents[3] / "shared" / "realdocs"
_MANIFEST = _FOLDER / "open" / "manifest.jsonl"
# Kinds that are refused for now; the refusal has to say what the file is.
_REFUSED = frozenset(
    [
        "archive",
        "image",
        "ipynb",
        "mbox",
        "msg",
        "doc",
        "ppt",
        "xls",
        "rtf",
        "odt",
        "ods",
        "epub",
        "other",
        "odt_encrypted",
    ]
)
# Where the manifest contradicts the file or itself; strict, so that a change of either is noticed.
_DISPUTED = {
    "unstructured__fake-bold-sample.pdf": "its last sentence really says 'BBOOLLDD'",
    "pandoc__track_changes_deletion.docx": "'modified' stands in deleted text only, which must not be indexed",
    "pandoc__track_changes_move.docx": "in the accepted view the moved sentence stands first",
}
_SECONDS = 60.0
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_FAULTS = {
    "encrypted": {Fault.ENCRYPTED},
    "corrupt": {Fault.CORRUPT},
    "empty": {Fault.EMPTY},
    "bomb_or_limit": {Fault.TOO_LARGE, Fault.UNSUPPORTED, Fault.TIMEOUT},
    "encrypted_partial": {Fault.ENCRYPTED, Fault.UNSUPPORTED},
    "encrypted_or_unsupported": {Fault.ENCRYPTED, Fault.UNSUPPORTED},
    "unsupported_or_expand": {Fault.UNSUPPORTED},
}
_OR_TEXT = {
    "bomb_or_limit_or_plain_text": {Fault.TOO_LARGE},
    "corrupt_or_plain_text": {Fault.CORRUPT},
    "unsupported_or_text": {Fault.UNSUPPORTED},
    "unsupported_encoding_or_text": {Fault.UNSUPPORTED},
    "refuse_or_ignore_entity": {Fault.CORRUPT, Fault.UNSUPPORTED},
}


def _cases(*, with_side_parts: bool = False) -> list[Any]:
    if not _MANIFEST.exists():
        reason = "the evaluation documents are not beside the checkout"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason), id="absent")]
    lines = _MANIFEST.read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    if with_side_parts:
        cases = [case for case in cases if _side_parts(case) and case["kind"] not in _REFUSED]
        return [_param(case) for case in cases]
    return [_param(case, _DISPUTED.get(Path(case["file"]).name)) for case in cases]


def _param(case: dict[str, Any], dispute: str | None = None) -> Any:
    marks = [pytest.mark.xfail(reason=dispute, strict=True)] if dispute else []
    return pytest.param(case, id=case["file"].removeprefix("open/"), marks=marks)


def _side_parts(case: dict[str, Any]) -> list[str]:
    return [*case.get("want_extra", []), *case.get("want_form", [])]


def folded(text: str) -> str:
    """Text as documents are compared: compatibility forms, one blank, no case."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(text.split()).casefold()


def _solid(text: str) -> str:
    return "".join(folded(text).split())


def holds(text: str, wanted: str, *, cjk: bool) -> bool:
    """Whether the text holds the string, in CJK also without the blanks."""
    if folded(wanted) in folded(text):
        return True
    return cjk and _solid(wanted) in _solid(text)


@pytest.mark.parametrize("case", _cases())
def test_document_gives_what_is_in_it(case: dict[str, Any]) -> None:
    path = _FOLDER / case["file"]
    started = time.monotonic()
    outcome: Extracted | ExtractionError
    try:
        outcome = extract_file(path, path.name, Limits(timeout_s=_SECONDS))
    except ExtractionError as error:
        outcome = error
    assert time.monotonic() - started < case.get("max_seconds", _SECONDS)
    if isinstance(outcome, ExtractionError):
        _check_refusal(case, outcome, path.name)
    else:
        check_blocks(outcome)
        _check_text(case, outcome)


def _check_refusal(case: dict[str, Any], error: ExtractionError, name: str) -> None:
    assert name in error.message
    assert len(error.message) > len(name) + 20
    wanted = case["expect_error"]
    if case.get("expect_empty") or case.get("needs_ocr"):
        allowed = {Fault.NO_TEXT, Fault.EMPTY}
        allowed |= {Fault.UNSUPPORTED} if case["kind"] == "image" else set()
    elif wanted in _FAULTS:
        allowed = _FAULTS[wanted]
    elif wanted in _OR_TEXT:
        allowed = _OR_TEXT[wanted]
    elif case["kind"] in _REFUSED:
        allowed = {Fault.UNSUPPORTED}
    elif not case["expect"] and not case.get("any_of"):
        allowed = {Fault.NO_TEXT}  # text in side parts only
    else:
        allowed = set()
    assert error.fault in allowed, error.message


def _check_text(case: dict[str, Any], extracted: Extracted) -> None:
    assert case["expect_error"] not in _FAULTS, "read although it has to be refused"
    assert not case.get("expect_empty"), "text in a file without text"
    text, cjk = extracted.text, case.get("lang") in {"zh", "ja", "ko"} or _has_cjk(case)
    missing = [wanted for wanted in case["expect"] if not holds(text, wanted, cjk=cjk)]
    assert not missing
    any_of = case.get("any_of") or [""]
    assert any(holds(f"{extracted.title}\n{text}", wanted, cjk=cjk) for wanted in any_of)
    assert [found for found in case.get("must_not", []) if found in text] == []
    for wanted in case.get("once", []):
        assert folded(text).count(folded(wanted)) == 1
    places = [folded(text).index(folded(wanted)) for wanted in case.get("order", [])]
    assert places == sorted(places)
    if case.get("pages"):
        assert extracted.coverage.found == case["pages"]
        assert {block.page for block in extracted.blocks} <= {*range(1, case["pages"] + 1)}


def _has_cjk(case: dict[str, Any]) -> bool:
    return any("\u3040" <= char <= "\ud7a3" for wanted in case["expect"] for char in wanted)


@pytest.mark.parametrize("case", _cases(with_side_parts=True))
def test_side_parts_are_read(case: dict[str, Any]) -> None:
    """Comments, notes, drawings, attachment names, filled forms."""
    path = _FOLDER / case["file"]
    text = extract_file(path, path.name, Limits(timeout_s=_SECONDS)).text
    assert [part for part in _side_parts(case) if not holds(text, part, cjk=True)] == []
