"""What a search may see. Retrieval takes an `AccessScope`, and only this module builds one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from accounts.access import PUBLIC, Action, Actor
from config.errors import FieldError, InvalidInputError
from connectors.services.principals import with_groups
from knowledge.access import visible_knowledge_bases
from knowledge.models import KnowledgeBase


@dataclass(frozen=True, slots=True)
class AccessScope:
    """The tenant, the bases searched and the principals searched as. No bases, no rows."""

    tenant_id: UUID
    bases: tuple[KnowledgeBase, ...]
    principals: tuple[str, ...]

    @property
    def base_ids(self) -> list[UUID]:
        """Ids of the bases."""
        return [base.id for base in self.bases]


def build_scope(
    actor: Actor, references: Sequence[str] | None, as_principals: Sequence[str] | None
) -> tuple[AccessScope, str | None]:
    """The scope of one search, and a remark when the actor asked for more than it may see.

    `references` are slugs or ids; none means every base the actor may use. Without `as_principals`
    an actor searches as itself. Raises `InvalidInputError` naming a base that is not there.
    """
    actor.require(Action.SEARCH)
    bases = list(visible_knowledge_bases(actor).filter(status=KnowledgeBase.Status.ACTIVE))
    if references:
        bases = _named(bases, references)
    remark = None
    principals = frozenset(actor.principals)
    if as_principals is not None:
        if actor.may_assert_principals:
            principals = frozenset({PUBLIC, *as_principals})
        else:
            remark = "This caller may not search on behalf of others; as_principals was left aside."
    principals = with_groups(principals)
    return AccessScope(actor.tenant_id, tuple(bases), tuple(sorted(principals))), remark


def _named(bases: Sequence[KnowledgeBase], references: Sequence[str]) -> list[KnowledgeBase]:
    by_name = {base.slug: base for base in bases} | {str(base.id): base for base in bases}
    missing = [name for name in references if name not in by_name]
    if missing:
        raise InvalidInputError(
            f"No knowledge base {', '.join(missing)}, or it is not open to you.",
            [FieldError("knowledge_bases", f"Unknown: {', '.join(missing)}.")],
        )
    return list({by_name[name].id: by_name[name] for name in references}.values())
