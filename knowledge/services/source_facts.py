"""What a source says about a document besides its content. A change of it embeds nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from knowledge.models import Chunk, Document


@dataclass(frozen=True)
class SourceFacts:
    """Title, place, people, times and readers of a document, as its source has them."""

    title: str
    url: str
    author: str
    breadcrumbs: tuple[str, ...]
    metadata: Mapping[str, Any]
    principals: tuple[str, ...]
    created_at: datetime | None
    updated_at: datetime | None

    @cached_property
    def digest(self) -> str:
        """Equal for equal facts."""
        text = json.dumps(asdict(self), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def update_source_facts(document_id: UUID, facts: SourceFacts) -> None:
    """Write the facts to a document, and to a version of it that is still being indexed. Permissions hold
    from the next search on, for the chunks that are found now."""
    rows = list(
        Document.objects.select_for_update()
        .filter(Q(id=document_id) | Q(replaces_id=document_id))
        .only("id", "title", "metadata", "author", "tenant_id")
        .order_by("id")
    )
    for row in rows:
        Document.objects.filter(id=row.id).update(
            title=facts.title or row.title,
            source_uri=facts.url,
            author=facts.author or row.author,
            breadcrumbs=list(facts.breadcrumbs),
            metadata={**row.metadata, **facts.metadata},
            principals=list(facts.principals),
            source_created_at=facts.created_at,
            source_updated_at=facts.updated_at,
            updated_at=timezone.now(),
        )
    chunks = Chunk.objects.filter(document_id__in=[row.id for row in rows])
    chunks.exclude(principals=list(facts.principals)).update(principals=list(facts.principals))
