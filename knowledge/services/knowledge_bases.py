"""Founding, changing and deleting knowledge bases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from accounts.access import Action, Actor
from accounts.services.audit import record_event
from config.errors import ConflictError, FieldError, InvalidInputError
from knowledge.models import Document, KnowledgeBase
from knowledge.services.boosts import BOOST_RULE, is_boost
from knowledge.services.originals import forget_originals
from providers.registry import default_model

EDITABLE = (
    "name",
    "slug",
    "description",
    "status",
    "language",
    "chunk_size",
    "chunk_overlap",
    "chunk_separator",
    "source_boosts",
)
MAX_BOOSTED_SOURCES = 100
MAX_SOURCE_CHARS = 50  # as long as a document's source may be


def create_knowledge_base(*, actor: Actor, name: str, **fields: Any) -> KnowledgeBase:
    """A new, empty base. The slug comes from the name unless given."""
    actor.require(Action.WRITE)
    base = KnowledgeBase(name=name.strip(), embedding_model=default_model(), **fields)
    if not base.slug:
        base.slug = _free_slug(slugify(name, allow_unicode=True)[:90] or "base")
    save_knowledge_base(actor=actor, base=base, action="knowledge_base.created")
    return base


def update_knowledge_base(*, actor: Actor, base: KnowledgeBase, **fields: Any) -> KnowledgeBase:
    """Change some fields. Chunking settings apply to documents from their next processing on."""
    actor.require(Action.WRITE)
    for name, value in fields.items():
        setattr(base, name, value)
    save_knowledge_base(
        actor=actor, base=base, action="knowledge_base.changed", detail=sorted(fields)
    )
    return base


def save_knowledge_base(
    *, actor: Actor, base: KnowledgeBase, action: str, detail: Iterable[str] = ()
) -> None:
    """Validate and write a base, with its audit event."""
    if not base.name.strip():
        raise InvalidInputError(
            "The base needs a name.", [FieldError("name", "Must not be empty.")]
        )
    base.chunking_options()
    check_source_boosts(base.source_boosts)
    # What is not edited here may have been changed by a worker since the base was read.
    fields = None if base._state.adding else [*EDITABLE, "updated_at"]  # noqa: SLF001 - documented
    try:
        with transaction.atomic():
            base.save(update_fields=fields)
    except IntegrityError as error:
        raise ConflictError(f"There is a knowledge base “{base.slug}” already.") from error
    record_event(
        actor, action, target=base.name, target_id=base.id, detail={"fields": list(detail)}
    )


def check_source_boosts(boosts: Any) -> None:
    """Raise `InvalidInputError` unless these are factors by source."""
    field = "settings.source_boosts"
    if not isinstance(boosts, dict) or len(boosts) > MAX_BOOSTED_SOURCES:
        told = f'Give factors by source, such as {{"wiki": 1.5}}, at most {MAX_BOOSTED_SOURCES}.'
        raise InvalidInputError("The boosts cannot be saved.", [FieldError(field, told)])
    errors = [
        FieldError(f"{field}.{source}", BOOST_RULE)
        for source, factor in boosts.items()
        if not is_boost(factor)
    ]
    errors += [
        FieldError(field, f"A source has a name of 1 to {MAX_SOURCE_CHARS} characters.")
        for source in boosts
        if not source.strip() or len(source) > MAX_SOURCE_CHARS
    ]
    if errors:
        raise InvalidInputError("The boosts cannot be saved.", errors)


def delete_knowledge_base(*, actor: Actor, base: KnowledgeBase) -> None:
    """Remove a base with everything in it. Workers still filling it find it gone and stop."""
    actor.require(Action.WRITE)
    names = list(
        Document.objects.filter(knowledge_base=base)
        .exclude(original="")
        .values_list("original", flat=True)
    )
    name, base_id = base.name, base.id
    KnowledgeBase.objects.filter(id=base_id).delete()
    record_event(
        actor,
        "knowledge_base.deleted",
        target=name,
        target_id=base_id,
        detail={"documents": len(names)},
    )
    forget_originals(names)


def _free_slug(wanted: str) -> str:
    taken = set(
        KnowledgeBase.objects.filter(slug__startswith=wanted).values_list("slug", flat=True)
    )
    number, slug = 1, wanted
    while slug in taken:
        number += 1
        slug = f"{wanted}-{number}"
    return slug
