"""Sets of synonyms as a CSV file, one set a row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from accounts.access import Action, Actor
from config.errors import AppError, FieldError, InvalidInputError, NotFoundError
from knowledge.access import access_knowledge_base
from search.models import SynonymSet
from search.services.synonyms import (
    MAX_SETS,
    SEPARATOR,
    change_synonym_set,
    clean_terms,
    create_synonym_set,
    find_equal_set,
    visible_synonym_sets,
)

COLUMNS = ("terms", "knowledge_base", "one_way", "enabled", "note")
MAX_FILE_BYTES = 5 * 1024 * 1024
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """What became of one row: created, changed or unchanged; or what is wrong with it."""

    row: int  # as a spreadsheet counts, the header being row 1
    outcome: str = ""
    set_id: UUID | None = None
    errors: tuple[FieldError, ...] = ()


def export_synonyms(actor: Actor) -> str:
    """The sets the actor keeps, oldest first; importing them again changes nothing."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for synonyms in visible_synonym_sets(actor).order_by("created_at", "id"):
        writer.writerow([
            f" {SEPARATOR} ".join(synonyms.terms),
            synonyms.knowledge_base.slug if synonyms.knowledge_base else "",
            str(synonyms.one_way).lower(),
            str(synonyms.enabled).lower(),
            synonyms.note,
        ])  # fmt: skip
    return file.getvalue()


def import_synonyms(actor: Actor, data: bytes) -> list[ImportedRow]:
    """Keep every good row and say what is wrong with the others. A row whose set is there already, but
    for spelling and order, changes that set.

    Raises `InvalidInputError` when the file as a whole cannot be read.
    """
    actor.require(Action.WRITE)
    return [_import_row(actor, number, row) for number, row in _rows(data)]


def _rows(data: bytes) -> Iterator[tuple[int, Mapping[str, str]]]:
    if len(data) > MAX_FILE_BYTES:
        raise _file_error(f"Larger than {MAX_FILE_BYTES // 1024 // 1024} MB.")
    if b"\x00" in data:
        raise _file_error("Is not CSV in UTF-8: it holds a zero byte.")
    try:
        text = data.decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except UnicodeDecodeError as error:
        raise _file_error("Must be UTF-8; in a spreadsheet choose “CSV UTF-8”.") from error
    except csv.Error as error:
        raise _file_error(f"Is not CSV: {error}.") from error
    header = [name.strip().lower() for name in rows[0]] if rows else []
    if "terms" not in header or not set(header) <= set(COLUMNS):
        raise _file_error(f"The first row must name columns of {', '.join(COLUMNS)}.")
    if len(rows) > MAX_SETS + 1:
        raise _file_error(f"At most {MAX_SETS:,} rows.")
    return (
        (number, dict(zip(header, row, strict=False)))
        for number, row in enumerate(rows[1:], start=2)
        if any(cell.strip() for cell in row)
    )


def _import_row(actor: Actor, number: int, row: Mapping[str, str]) -> ImportedRow:
    try:
        with transaction.atomic():
            outcome, synonyms = _keep(actor, _fields(actor, row))
    except InvalidInputError as error:
        faults = error.errors or (FieldError("terms", error.message),)
        return ImportedRow(number, errors=faults)
    except AppError as error:
        return ImportedRow(number, errors=(FieldError("terms", error.message),))
    return ImportedRow(number, outcome, synonyms.id)


def _fields(actor: Actor, row: Mapping[str, str]) -> dict[str, Any]:
    """What a row says; a column or cell that is not there leaves the default."""
    fields: dict[str, Any] = {"terms": clean_terms(row.get("terms", "").split(SEPARATOR))}
    if slug := row.get("knowledge_base", "").strip():
        try:
            fields["knowledge_base"] = access_knowledge_base(actor, slug, Action.WRITE)
        except NotFoundError as error:
            raise _row_error("knowledge_base", f"There is no knowledge base “{slug}”.") from error
    for name in ("one_way", "enabled"):
        if word := row.get(name, "").strip().lower():
            if word not in _WORDS:
                raise _row_error(name, "Write true or false.")
            fields[name] = _WORDS[word]
    if note := row.get("note", "").strip():
        fields["note"] = note
    return fields


def _keep(actor: Actor, fields: dict[str, Any]) -> tuple[str, SynonymSet]:
    wanted = SynonymSet(**fields)
    known = find_equal_set(wanted) if wanted.terms else None
    if known is None:
        return "created", create_synonym_set(actor=actor, **fields)
    changed = {name: value for name, value in fields.items() if getattr(known, name) != value}
    if not changed:
        return "unchanged", known
    return "changed", change_synonym_set(actor=actor, synonyms=known, **changed)


def _file_error(message: str) -> InvalidInputError:
    return InvalidInputError("The file cannot be imported.", [FieldError("file", message)])


def _row_error(field: str, message: str) -> InvalidInputError:
    return InvalidInputError("The row cannot be imported.", [FieldError(field, message)])
