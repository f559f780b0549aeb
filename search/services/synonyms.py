"""Keeping the synonyms of a tenant. What they do to a search is in `search.retrieval.synonyms`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from accounts.access import Action, Actor, row_by_id
from accounts.services.audit import record_event
from accounts.tenancy import current_tenant_id
from config.errors import ConflictError, FieldError, InvalidInputError
from knowledge.lexical.phrases import phrase_identity, phrase_keys
from search.models import SynonymSet

MAX_SETS = 1_000  # of a tenant: a search looks through all of them
MIN_TERMS, MAX_TERMS = 2, 20
MAX_TERM_CHARS = 100
MAX_NOTE_CHARS = 1_000
SEPARATOR = "|"  # between the terms of a set in a CSV file
EDITABLE = ("knowledge_base", "terms", "one_way", "enabled", "note")
_LOCK = 7_205_003  # names our advisory lock beside a tenant's id


def visible_synonym_sets(actor: Actor) -> QuerySet[SynonymSet]:
    """The sets this actor keeps: one bound to some bases has nothing to say about those of all."""
    actor.require(Action.WRITE)
    sets: QuerySet[SynonymSet] = SynonymSet.objects.select_related("knowledge_base")
    if actor.knowledge_base_ids is not None:
        sets = sets.filter(knowledge_base_id__in=actor.knowledge_base_ids)
    return sets


def access_synonym_set(actor: Actor, reference: str | UUID) -> SynonymSet:
    """A set by id. Raises `NotFoundError`."""
    return row_by_id(visible_synonym_sets(actor), reference)


def create_synonym_set(*, actor: Actor, terms: Sequence[str], **fields: Any) -> SynonymSet:
    """Keep a set; it holds from the next search on. `fields` are of `EDITABLE`.

    Raises `InvalidInputError` naming what is wrong with the terms, or `ConflictError` when the tenant
    has `MAX_SETS` already.
    """
    actor.require(Action.WRITE)
    created = SynonymSet(terms=terms, created_by=actor.label[:300], **fields)
    _lock()
    if SynonymSet.objects.count() >= MAX_SETS:
        raise ConflictError(f"A tenant keeps at most {MAX_SETS:,} sets of synonyms.")
    _prepare(actor, created)
    created.save(force_insert=True)
    record_event(actor, "synonyms.created", target=str(created), target_id=created.id)
    return created


def change_synonym_set(*, actor: Actor, synonyms: SynonymSet, **fields: Any) -> SynonymSet:
    """Change some of `EDITABLE`. Raises as creating does."""
    actor.require(Action.WRITE)
    for name, value in fields.items():
        setattr(synonyms, name, value)
    _lock()
    _prepare(actor, synonyms)
    synonyms.save(update_fields=[*EDITABLE, "keys", "updated_at"])
    record_event(
        actor, "synonyms.changed", target=str(synonyms), target_id=synonyms.id,
        detail={"fields": sorted(fields)},
    )  # fmt: skip
    return synonyms


def delete_synonym_set(*, actor: Actor, synonyms: SynonymSet) -> None:
    """Forget a set."""
    actor.require(Action.WRITE)
    set_id, target = synonyms.id, str(synonyms)
    SynonymSet.objects.filter(id=set_id).delete()
    record_event(actor, "synonyms.deleted", target=target, target_id=set_id)


def find_equal_set(synonyms: SynonymSet) -> SynonymSet | None:
    """A kept set for the same bases whose terms are the same but for spelling and order."""
    wanted = _identities(synonyms.terms)
    same_bases = SynonymSet.objects.filter(knowledge_base=synonyms.knowledge_base)
    found: SynonymSet
    for found in same_bases.filter(keys__overlap=_keys(synonyms)).exclude(id=synonyms.id):
        same_first = phrase_identity(found.terms[0]) == phrase_identity(synonyms.terms[0])
        one_way = found.one_way or synonyms.one_way
        if _identities(found.terms) == wanted and (same_first or not one_way):
            return found
    return None


def clean_terms(terms: Iterable[str]) -> list[str]:
    """Without surrounding and doubled blanks, and without empty ones."""
    plain = (" ".join(term.split()) for term in terms)
    return [term for term in plain if term]


def _prepare(actor: Actor, synonyms: SynonymSet) -> None:
    """Check a set that is about to be written, and derive its keys."""
    synonyms.terms = clean_terms(synonyms.terms)
    errors = _base_errors(actor, synonyms) + _term_errors(synonyms.terms)
    if len(synonyms.note) > MAX_NOTE_CHARS:
        errors.append(FieldError("note", f"At most {MAX_NOTE_CHARS:,} characters."))
    errors = errors or _taken_errors(actor, synonyms)
    if errors:
        raise InvalidInputError("The synonyms cannot be saved.", errors)
    synonyms.keys = _keys(synonyms)


def _base_errors(actor: Actor, synonyms: SynonymSet) -> list[FieldError]:
    bound = actor.knowledge_base_ids
    if bound is None or synonyms.knowledge_base_id in bound:
        return []
    return [FieldError("knowledge_base", "Name a knowledge base that is open to you.")]


def _term_errors(terms: Sequence[str]) -> list[FieldError]:
    if not MIN_TERMS <= len(terms) <= MAX_TERMS:
        told = f"Give {MIN_TERMS} to {MAX_TERMS} terms that mean the same."
        return [FieldError("terms", told)]
    faults = [fault for term in terms if (fault := _fault_of(term))]
    seen: dict[tuple[str, ...], str] = {}
    for term in terms:
        before = seen.setdefault(phrase_identity(term), term)
        if before is not term and not faults:
            faults.append(f"“{term}” is the same as “{before}” to a search: leave one out.")
    return [FieldError("terms", fault) for fault in faults]


def _fault_of(term: str) -> str:
    if len(term) > MAX_TERM_CHARS:
        return f"“{term[:20]}…” is longer than {MAX_TERM_CHARS} characters."
    if SEPARATOR in term or not term.isprintable():
        return f"“{term}” holds a sign that no term may hold: {SEPARATOR} or a control character."
    if not any(phrase_identity(term)):
        return f"“{term}” has no letter or digit to look for."
    return ""


def _taken_errors(actor: Actor, synonyms: SynonymSet) -> list[FieldError]:
    """A term leads to one set only: two would both apply, and nobody could tell why."""
    others = SynonymSet.objects.filter(keys__overlap=_keys(synonyms)).exclude(id=synonyms.id)
    if synonyms.knowledge_base_id is not None:
        everywhere_or_here = Q(knowledge_base_id=synonyms.knowledge_base_id)
        others = others.filter(Q(knowledge_base=None) | everywhere_or_here)
    wanted = {phrase_identity(term): term for term in synonyms.asked_terms}
    errors = []
    for other in others.select_related("knowledge_base"):
        for term in other.asked_terms:
            if (own := wanted.get(phrase_identity(term))) is not None:
                told = f"“{own}” is in another set already: {_named(actor, other)}."
                errors.append(FieldError("terms", told))
    return errors


def _named(actor: Actor, other: SynonymSet) -> str:
    """The other set, to those who may see it."""
    bound = actor.knowledge_base_ids
    if bound is not None and other.knowledge_base_id not in bound:
        return "one that holds for all knowledge bases"
    where = f" ({other.knowledge_base.slug})" if other.knowledge_base else ""
    state = "" if other.enabled else ", switched off"
    return f"{other}{where}{state}, {other.id}"


def _keys(synonyms: SynonymSet) -> list[str]:
    return sorted({key for term in synonyms.asked_terms for key in phrase_keys(term)})


def _identities(terms: Iterable[str]) -> set[tuple[str, ...]]:
    return {phrase_identity(term) for term in terms}


def _lock() -> None:
    """One writer at a time, so that two cannot take the same term for different sets."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, str(current_tenant_id())]
        )
