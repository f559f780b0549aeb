"""Making, changing, checking and removing connections."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Value
from django.db.models.functions import Concat, Left

from accounts.access import Action, Actor
from accounts.services.audit import record_event
from config.errors import ConflictError, FieldError, InvalidInputError
from config.secrets import SealedError, reseal
from connectors.base import Browsable, Node
from connectors.models import Connection, SyncRun
from connectors.registry import connector_class
from connectors.services import capture
from connectors.services.opening import (
    Patience,
    auth_method,
    cache_folder,
    open_connector,
    parse_config,
    parse_credentials,
)
from connectors.services.schedules import (
    default_schedule,
    follow_schedules,
    forget_schedules,
    validate_schedule,
)
from knowledge.models import Document, KnowledgeBase
from knowledge.services.documents import remove_documents, validate_principals

_CHANGEABLE = frozenset(
    {
        "name", "config", "auth_method", "credentials", "access", "principals", "schedule", "full_schedule",
        "deletion_guard_percent", "keeps_capture",
    }
)  # fmt: skip
_BATCH = 500
_SOMEBODY_WAITS = Patience(attempts=2, read_timeout_s=20.0)


def create_connection(
    *, actor: Actor, base: KnowledgeBase, connector: str, name: str = "", **values: Any
) -> Connection:
    """Connect a source to a base. Raises `InvalidInputError` naming each wrong field. Credentials may come
    later, as by a sign-in; until then runs end as skipped."""
    actor.require(Action.WRITE)
    spec = connector_class(connector).spec
    connection = Connection(
        knowledge_base=base,
        connector=connector,
        name=(name or spec.name)[:200],
        auth_method=values.pop("auth_method", "") or spec.auth[0].name,
        schedule=values.pop("schedule", default_schedule(spec)),
        created_by=actor.label[:300],
    )
    _assign(connection, values)
    _validate(connection, values)
    _save(connection, force_insert=True)
    follow_schedules(connection)
    record_event(
        actor, "connection.created", target=str(connection), target_id=connection.id,
        detail={"connector": connector, "knowledge_base": base.slug},
    )  # fmt: skip
    return connection


def update_connection(*, actor: Actor, connection: Connection, **values: Any) -> Connection:
    """Change settings. New credentials of a connection that waits for them make it active again."""
    actor.require(Action.WRITE)
    _assign(connection, values)
    _validate(connection, values)
    if values.get("credentials") and connection.status == Connection.Status.NEEDS_AUTHORISATION:
        _activate(connection)
    if "config" in values:
        connection.cursor = {}  # another extent: the next run compares everything
    _save(connection)
    follow_schedules(connection)
    record_event(
        actor, "connection.changed", target=str(connection), target_id=connection.id,
        detail={"fields": sorted(values)},
    )  # fmt: skip
    return connection


def pause_connection(*, actor: Actor, connection: Connection) -> Connection:
    """No run begins until it is resumed. One that is going on ends as usual."""
    actor.require(Action.WRITE)
    connection.status, connection.status_reason = Connection.Status.PAUSED, ""
    _save(connection)
    follow_schedules(connection)
    record_event(actor, "connection.paused", target=str(connection), target_id=connection.id)
    return connection


def resume_connection(*, actor: Actor, connection: Connection) -> Connection:
    """Let runs begin again."""
    actor.require(Action.WRITE)
    _activate(connection)
    _save(connection)
    follow_schedules(connection)
    record_event(actor, "connection.resumed", target=str(connection), target_id=connection.id)
    return connection


def delete_connection(
    *, actor: Actor, connection: Connection, keep_documents: bool = False
) -> None:
    """Remove a connection with what it brought, or leave the documents as if they had been uploaded.
    Raises `ConflictError` while a run is going on."""
    actor.require(Action.WRITE)
    Connection.objects.select_for_update().get(id=connection.id)  # no run can begin meanwhile
    if connection.runs.filter(status__in=SyncRun.UNFINISHED).exists():
        raise ConflictError("A sync of this connection is going on. Cancel it first.")
    documents = Document.objects.filter(source_id=connection.id)
    if keep_documents:
        # Still unlike those of other sources whose connections are gone.
        named = Concat(Value(f"{connection.id}:"), F("external_id"))
        documents.update(source_id=None, external_id=Left(named, 500))
    else:
        ids = list(documents.filter(replaces=None).values_list("id", flat=True))
        for start in range(0, len(ids), _BATCH):
            remove_documents(ids[start : start + _BATCH])
    capture.forget_all(connection)
    cache = cache_folder(connection)
    transaction.on_commit(lambda: shutil.rmtree(cache, ignore_errors=True))
    forget_schedules(connection)
    record_event(
        actor, "connection.deleted", target=str(connection), target_id=connection.id,
        detail={"documents_kept": keep_documents},
    )  # fmt: skip
    Connection.objects.filter(id=connection.id).delete()


def check_connection(*, actor: Actor, connection: Connection) -> str:
    """Try it now. Returns who or what was reached; raises what stands in the way. Not to be called in a
    transaction: it waits for the source."""
    actor.require(Action.WRITE)
    return open_connector(connection, patience=_SOMEBODY_WAITS).check()


def browse_connection(*, actor: Actor, connection: Connection, parent: str = "") -> list[Node]:
    """The places of the source below one of them. Raises `InvalidInputError` when it has none to show."""
    actor.require(Action.WRITE)
    connector = open_connector(connection, patience=_SOMEBODY_WAITS)
    if not isinstance(connector, Browsable):
        raise InvalidInputError(f"{connector.spec.name} has no places to choose from.")
    return connector.browse(parent)


def rotate_credentials() -> tuple[int, int]:
    """Encrypt every connection's credentials with the first key. Returns how many that were, and how many no
    key opens. What a sync renews meanwhile stays as the sync has written it."""
    rows = Connection.unscoped.exclude(sealed_credentials="").only("id", "sealed_credentials")
    done = unreadable = 0
    for connection in rows.iterator():
        before = connection.sealed_credentials
        try:
            after = reseal(before)
        except SealedError:
            unreadable += 1
            continue
        same = Connection.unscoped.filter(id=connection.id, sealed_credentials=before)
        same.update(sealed_credentials=after)
        done += 1
    return done, unreadable


def _assign(connection: Connection, values: Mapping[str, Any]) -> None:
    unknown = set(values) - _CHANGEABLE
    if unknown:
        faults = [FieldError(name, "Cannot be set.") for name in sorted(unknown)]
        raise InvalidInputError("The connection cannot be saved.", faults)
    if values.get("auth_method", connection.auth_method) != connection.auth_method:
        connection.credentials = {}  # those of another way say nothing
    for name, value in values.items():
        setattr(connection, name, value)
    connection.name = connection.name.replace("\x00", "")[:200]


def _validate(connection: Connection, values: Mapping[str, Any]) -> None:
    spec = connector_class(connection.connector).spec
    connection.config = parse_config(spec, connection.config).model_dump(mode="json")
    method = auth_method(spec, connection.auth_method)
    if values.get("credentials"):
        parse_credentials(method, values["credentials"])
    validate_principals(connection.principals)
    validate_schedule("schedule", connection.schedule)
    validate_schedule("full_schedule", connection.full_schedule)
    if not 0 < connection.deletion_guard_percent <= 100:
        fault = FieldError("deletion_guard_percent", "From 1 to 100.")
        raise InvalidInputError("The connection cannot be saved.", [fault])


def _activate(connection: Connection) -> None:
    connection.status, connection.status_reason = Connection.Status.ACTIVE, ""
    connection.credential_failures = 0


def _save(connection: Connection, *, force_insert: bool = False) -> None:
    try:
        with transaction.atomic():
            connection.save(force_insert=force_insert)
    except IntegrityError as error:
        fault = FieldError("name", "Another connection of this base has this name.")
        raise InvalidInputError(
            f"The connection cannot be saved. {fault.message}", [fault]
        ) from error
