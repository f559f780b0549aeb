"""Who may do what at every route of the API. A route that is missing here fails the suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from accounts.access import Action
from accounts.api.permissions import ANY_ACTOR, Right
from accounts.models import Tenant, WebhookDelivery, WebhookEndpoint
from accounts.tenancy import tenant_scope
from connectors.models import Connection, SyncItem, SyncRun
from knowledge.models import Chunk, Document, KnowledgeBase, ReEmbedding
from search.models import GoldenQuery, GoldenRun, SearchQuery, SynonymSet
from tests.factories import make_key, make_membership


@dataclass(frozen=True, slots=True)
class Route:
    """The right each method needs; for routes about one object, how to make one in a tenant, and a
    body that is valid, so that the answer depends on the object alone. `name`: of a thing that every
    tenant sees."""

    rights: Mapping[str, Right]
    make: Callable[[Tenant], UUID] | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


def _key(tenant: Tenant) -> UUID:
    return make_key(tenant=tenant)[0].id


def _member(tenant: Tenant) -> UUID:
    return make_membership(tenant=tenant).id


def _webhook(tenant: Tenant) -> UUID:
    with tenant_scope(tenant.id):
        endpoint = WebhookEndpoint(url="https://secret.example/", event_types=["sync.failed"])
        endpoint.secret = "whsec_c2VjcmV0"
        endpoint.save()
    return endpoint.id


def _delivery(tenant: Tenant) -> UUID:
    endpoint_id = _webhook(tenant)
    with tenant_scope(tenant.id):
        delivery = WebhookDelivery(
            endpoint_id=endpoint_id, event_type="ping", payload={}, status="failed"
        )
        delivery.save()
    return delivery.id


def _base(tenant: Tenant) -> UUID:
    with tenant_scope(tenant.id):
        base = KnowledgeBase(name="Base", slug="base", embedding_model="none")
        base.save()
    return base.id


def _document(tenant: Tenant) -> UUID:
    base = _base(tenant)
    with tenant_scope(tenant.id):
        document = Document(knowledge_base_id=base, title="Secret")
        document.save()
    return document.id


def _chunk(tenant: Tenant) -> UUID:
    document_id = _document(tenant)
    with tenant_scope(tenant.id):
        document = Document.objects.get(id=document_id)
        chunk = Chunk(
            knowledge_base_id=document.knowledge_base_id,
            document=document,
            ordinal=0,
            content="Secret",
            start=0,
            end=6,
        )
        chunk.save()
    return chunk.id


def _base_in_change(tenant: Tenant) -> UUID:
    base = _base(tenant)
    with tenant_scope(tenant.id):
        ReEmbedding(
            knowledge_base_id=base, from_model="none", to_model="other", field="embedding_alternate"
        ).save()
    return base


def _search(tenant: Tenant) -> UUID:
    with tenant_scope(tenant.id):
        search = SearchQuery(actor="someone", query="secret", mode="instant", strategy="lexical")
        search.save()
    return search.id


def _golden(tenant: Tenant) -> UUID:
    base_id = _base(tenant)
    with tenant_scope(tenant.id):
        golden = GoldenQuery(
            knowledge_base_id=base_id, query="secret?", document_id=base_id, quote="Secret"
        )
        golden.save()
    return golden.id


def _golden_run(tenant: Tenant) -> UUID:
    base_id = _base(tenant)
    with tenant_scope(tenant.id):
        run = GoldenRun(knowledge_base_id=base_id, trigger="schedule", embedding_model="none")
        run.save()
    return run.id


def _synonyms(tenant: Tenant) -> UUID:
    with tenant_scope(tenant.id):
        synonyms = SynonymSet(terms=["secret", "classified"])
        synonyms.save()
    return synonyms.id


def _connection(tenant: Tenant, connector: str = "folder") -> UUID:
    base_id = _base(tenant)
    with tenant_scope(tenant.id):
        connection = Connection(
            knowledge_base_id=base_id,
            connector=connector,
            name="Secret",
            config={"path": "/nowhere"} if connector == "folder" else {},
        )
        connection.save()
    return connection.id


def _pushed(tenant: Tenant) -> UUID:
    return _connection(tenant, "push")


def _sync_run(tenant: Tenant) -> UUID:
    connection_id = _connection(tenant)
    with tenant_scope(tenant.id):
        run = SyncRun(connection_id=connection_id, kind="full", trigger="someone")
        run.save()
    return run.id


def _sync_item(tenant: Tenant) -> UUID:
    """One with the id of its connection, for the route names both."""
    connection_id = _connection(tenant)
    with tenant_scope(tenant.id):
        SyncItem(
            id=connection_id, connection_id=connection_id, external_id="secret", status="failed"
        ).save(force_insert=True)
    return connection_id


READ, WRITE, ADMIN, SEARCH = Action.READ, Action.WRITE, Action.ADMIN, Action.SEARCH
ROUTES: dict[str, Route] = {
    "me/": Route({"GET": ANY_ACTOR}),
    "api-keys/": Route({"GET": ADMIN, "POST": ADMIN}),
    "api-keys/<uuid:pk>/": Route({"DELETE": ADMIN}, _key),
    "members/": Route({"GET": ADMIN, "POST": ADMIN}),
    "members/<uuid:pk>/": Route({"PATCH": ADMIN, "DELETE": ADMIN}, _member, {"role": "viewer"}),
    "audit-events/": Route({"GET": ADMIN}),
    "webhooks/": Route({"GET": ADMIN, "POST": ADMIN}),
    "webhooks/<uuid:pk>/": Route(
        {"GET": ADMIN, "PATCH": ADMIN, "DELETE": ADMIN}, _webhook, {"description": "Mine"}
    ),
    "webhooks/<uuid:pk>/ping/": Route({"POST": ADMIN}, _webhook),
    "webhooks/<uuid:pk>/deliveries/": Route({"GET": ADMIN}, _webhook),
    "webhook-deliveries/<uuid:pk>/": Route({"GET": ADMIN}, _delivery),
    "webhook-deliveries/<uuid:pk>/replay/": Route({"POST": ADMIN}, _delivery),
    "knowledge-bases/": Route({"GET": READ, "POST": WRITE}),
    "knowledge-bases/<str:reference>/": Route(
        {"GET": READ, "PUT": WRITE, "PATCH": WRITE, "DELETE": WRITE}, _base, {"name": "Mine"}
    ),
    "knowledge-bases/<str:reference>/documents/": Route(
        {"GET": READ, "POST": WRITE}, _base, {"title": "Mine", "content": "Mine"}
    ),
    "knowledge-bases/<str:reference>/re-embedding/": Route(
        {"GET": READ, "POST": WRITE, "DELETE": WRITE},
        _base_in_change,
        {"embedding_model": "multilingual-e5-small"},
    ),
    "knowledge-bases/<str:reference>/re-embedding/roll-back/": Route(
        {"POST": WRITE}, _base_in_change
    ),
    "embedding-models/": Route({"GET": READ}),
    "documents/<str:pk>/": Route({"GET": READ, "PATCH": WRITE, "DELETE": WRITE}, _document),
    "documents/<str:pk>/chunks/": Route({"GET": READ}, _document),
    "documents/<str:pk>/original/": Route({"GET": READ}, _document),
    "documents/<str:pk>/text/": Route({"GET": READ}, _document),
    "documents/<str:pk>/reprocess/": Route({"POST": WRITE}, _document),
    "chunks/<str:pk>/": Route({"GET": READ, "PATCH": WRITE}, _chunk, {"enabled": False}),
    "connectors/": Route({"GET": READ}),
    "connectors/<str:kind>/": Route({"GET": READ}, name="folder"),
    "connections/": Route({"GET": WRITE, "POST": WRITE}),
    "connections/<str:pk>/": Route(
        {"GET": WRITE, "PATCH": WRITE, "DELETE": WRITE}, _connection, {"name": "Mine"}
    ),
    "connections/<str:pk>/check/": Route({"POST": WRITE}, _connection),
    "connections/<str:pk>/browse/": Route({"GET": WRITE}, _connection),
    "connections/<str:pk>/pause/": Route({"POST": WRITE}, _connection),
    "connections/<str:pk>/resume/": Route({"POST": WRITE}, _connection),
    "connections/<str:pk>/approve-deletions/": Route({"POST": WRITE}, _connection),
    "connections/<str:pk>/sync/": Route({"POST": WRITE}, _connection),
    "connections/<str:pk>/runs/": Route({"GET": WRITE}, _connection),
    "connections/<str:pk>/items/": Route({"GET": WRITE}, _connection),
    "connections/<str:pk>/items/<str:item_pk>/retry/": Route({"POST": WRITE}, _sync_item),
    "connections/<str:pk>/retry-failed/": Route({"POST": WRITE}, _connection),
    "connections/<str:pk>/records/": Route({"POST": WRITE}, _pushed, {"delete": ["secret"]}),
    "sync-runs/<str:pk>/": Route({"GET": WRITE}, _sync_run),
    "sync-runs/<str:pk>/cancel/": Route({"POST": WRITE}, _sync_run),
    "golden-queries/": Route({"GET": WRITE, "POST": WRITE}),
    "golden-queries/<str:pk>/": Route(
        {"GET": WRITE, "PATCH": WRITE, "DELETE": WRITE}, _golden, {"note": "Mine"}
    ),
    "golden-runs/<str:pk>/": Route({"GET": WRITE}, _golden_run),
    "knowledge-bases/<str:reference>/golden-runs/": Route({"GET": WRITE, "POST": WRITE}, _base),
    "search/": Route({"POST": SEARCH}),
    "search/facets/": Route({"GET": SEARCH}),
    "search/why-not/": Route({"POST": SEARCH}),
    "synonyms/": Route({"GET": WRITE, "POST": WRITE}),
    "synonyms/import/": Route({"POST": WRITE}),
    "synonyms/export/": Route({"GET": WRITE}),
    "synonyms/<str:pk>/": Route(
        {"GET": WRITE, "PATCH": WRITE, "DELETE": WRITE}, _synonyms, {"note": "Mine"}
    ),
    "searches/": Route({"GET": ADMIN}),
    "searches/<str:pk>/feedback/": Route({"POST": SEARCH}, _search, {"rating": "up"}),
}
# Routes without an actor: why they may be open.
OPEN_ROUTES: dict[str, str] = {
    "hooks/<str:pk>/": "the connector checks the sender's signature; see tests/connectors/test_hooks.py",
}
