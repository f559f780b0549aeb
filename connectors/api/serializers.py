"""What the API says of connectors, connections, runs and items, and what it takes. Credentials go in only."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from config.errors import NotFoundError
from connectors.base import AuthMethod, Connector, Settings
from connectors.models import Connection, SyncItem, SyncRun
from connectors.registry import connector_class
from connectors.services.schedules import default_schedule

HIDDEN = "**********"
_PRINCIPAL = r"^(public|user:.+|group:.+)$"
_SCHEDULE = (
    'E.g. {"every_minutes": 60}, {"cron": "0 6 * * *", "time_zone": "Europe/Berlin"}, {} for none.'
)


def storable_json(value: Any) -> None:
    """Refuses what PostgreSQL does not take as JSON."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError as error:
        raise serializers.ValidationError("Holds a text or a number that is none.") from error
    if "\\u0000" in text:
        raise serializers.ValidationError("Must hold no null characters.")


@cache
def schema_of(model: type[Settings]) -> dict[str, Any]:
    """The JSON Schema of configuration or credentials."""
    return model.model_json_schema()


def principals_field(**options: Any) -> serializers.ListField:
    """A list of those who may read."""
    message = "Write public, user:mail@example.com or group:name."
    child = serializers.RegexField(_PRINCIPAL, max_length=300, error_messages={"invalid": message})
    return serializers.ListField(child=child, **options)


class AuthMethodSerializer(serializers.Serializer[AuthMethod]):
    """One way to prove who connects; `oauth`: a person signs in."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment] # a field takes the property's name
    hint = serializers.CharField()
    oauth = serializers.SerializerMethodField()
    credentials = serializers.SerializerMethodField(help_text="JSON Schema.")

    def get_oauth(self, method: AuthMethod) -> bool:
        """Whether tokens come from a sign-in."""
        return method.oauth is not None

    def get_credentials(self, method: AuthMethod) -> dict[str, Any]:
        """Its fields."""
        return schema_of(method.credentials)


class ConnectorSerializer(serializers.Serializer[Any]):
    """What is known of a connector without running it."""

    kind = serializers.CharField(source="spec.kind")
    name = serializers.CharField(source="spec.name")
    description = serializers.CharField(source="spec.description")
    category = serializers.CharField(source="spec.category")
    backend = serializers.CharField(source="spec.backend")
    documentation_url = serializers.CharField(source="spec.documentation_url")
    auth = AuthMethodSerializer(source="spec.auth", many=True)
    config = serializers.SerializerMethodField(help_text="JSON Schema.")
    capabilities = serializers.SerializerMethodField()
    default_schedule = serializers.SerializerMethodField()

    def get_config(self, connector: type[Connector[Any]]) -> dict[str, Any]:
        """The fields of a configuration."""
        return schema_of(connector.spec.config)

    def get_capabilities(self, connector: type[Connector[Any]]) -> list[str]:
        """What it can do, in alphabetical order."""
        return sorted(connector.capabilities())

    def get_default_schedule(self, connector: type[Connector[Any]]) -> dict[str, int]:
        """How often a new connection looks for changes unless told."""
        return default_schedule(connector.spec)


class RunCountsSerializer(serializers.Serializer[SyncRun]):
    """What became of the records of a run."""

    inserted = serializers.IntegerField()
    updated = serializers.IntegerField()
    kept = serializers.IntegerField()
    deleted = serializers.IntegerField()
    failed = serializers.IntegerField()


class SyncRunSerializer(serializers.ModelSerializer[SyncRun]):
    """One run and how it ended."""

    connection = serializers.UUIDField(source="connection_id", read_only=True)
    counts = RunCountsSerializer(source="*", read_only=True)
    duration_s = serializers.SerializerMethodField()

    class Meta:
        model = SyncRun
        fields = (
            "id", "connection", "kind", "trigger", "status", "counts", "held_deletions", "warnings",
            "error", "error_code", "created_at", "started_at", "finished_at", "duration_s",
        )  # fmt: skip
        read_only_fields = fields

    def get_duration_s(self, run: SyncRun) -> float | None:
        """From its first start on, waiting for the source included; None before."""
        if run.started_at is None:
            return None
        return round(((run.finished_at or timezone.now()) - run.started_at).total_seconds(), 3)


class ItemCountsSerializer(serializers.Serializer[Any]):
    """Items by status; `not_indexed` are stored ones whose document could not be indexed."""

    stored = serializers.IntegerField()
    failed = serializers.IntegerField()
    skipped = serializers.IntegerField()
    gone = serializers.IntegerField()
    not_indexed = serializers.IntegerField()


class ConnectionSerializer(serializers.ModelSerializer[Connection]):
    """A configured source of a knowledge base, with how it stands."""

    # Rows come from `with_standing`.
    knowledge_base = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    config = serializers.SerializerMethodField()
    has_credentials = serializers.SerializerMethodField()
    counts = serializers.SerializerMethodField()
    last_run = serializers.SerializerMethodField()

    class Meta:
        model = Connection
        fields = (
            "id", "connector", "knowledge_base", "name", "config", "auth_method", "has_credentials",
            "access", "principals", "schedule", "full_schedule", "deletion_guard_percent",
            "keeps_capture", "status", "status_reason", "last_synced_at", "counts", "last_run",
            "created_by", "created_at", "updated_at",
        )  # fmt: skip
        read_only_fields = fields

    def get_config(self, connection: Connection) -> dict[str, Any]:
        """The configuration; what is secret in it is hidden."""
        try:
            schema = schema_of(connector_class(connection.connector).spec.config)
        except NotFoundError:  # of an older version; which of its fields are secret is not known
            return dict.fromkeys(connection.config, HIDDEN)
        secret = {n for n, field in schema.get("properties", {}).items() if _is_secret(field)}
        return {
            name: HIDDEN if name in secret and value else value
            for name, value in connection.config.items()
        }

    def get_has_credentials(self, connection: Connection) -> bool:
        """Whether there are any; they are never shown."""
        return bool(connection.sealed_credentials)

    @extend_schema_field(ItemCountsSerializer)
    def get_counts(self, connection: Any) -> dict[str, int]:
        """Items by status."""
        counts = connection.item_counts or dict.fromkeys(SyncItem.Status.values, 0)
        return {**counts, "not_indexed": connection.count_not_indexed}

    @extend_schema_field(SyncRunSerializer(allow_null=True))
    def get_last_run(self, connection: Any) -> dict[str, Any] | None:
        """The newest run."""
        runs = connection.latest_runs
        return dict(SyncRunSerializer(runs[0]).data) if runs else None


def _is_secret(field: Any) -> bool:
    """Whether a property of a schema is a secret text, perhaps one that may be left out."""
    return bool(field.get("writeOnly")) or any(_is_secret(one) for one in field.get("anyOf", ()))


class ConnectionChangeSerializer(serializers.Serializer[Connection]):
    """What may be changed. `config` and `credentials` are taken as a whole."""

    name = serializers.CharField(max_length=200, required=False)
    config = serializers.DictField(required=False, validators=[storable_json])
    auth_method = serializers.CharField(max_length=30, required=False)
    credentials = serializers.DictField(required=False, write_only=True)
    access = serializers.ChoiceField(choices=Connection.Access.choices, required=False)
    principals = principals_field(required=False)
    schedule = serializers.DictField(required=False, help_text=_SCHEDULE)
    full_schedule = serializers.DictField(required=False, help_text=_SCHEDULE)
    deletion_guard_percent = serializers.IntegerField(required=False, min_value=1, max_value=100)
    keeps_capture = serializers.BooleanField(required=False)


class NewConnectionSerializer(ConnectionChangeSerializer):
    """A new connection."""

    connector = serializers.CharField(max_length=50)
    knowledge_base = serializers.CharField(help_text="Slug or id.")


class ConnectionFilterSerializer(serializers.Serializer[Any]):
    """Narrows the list."""

    knowledge_base = serializers.CharField(required=False, help_text="Slug or id.")
    connector = serializers.CharField(required=False)
    status = serializers.ChoiceField(Connection.Status.choices, required=False)


class SyncItemSerializer(serializers.ModelSerializer[SyncItem]):
    """One thing at the source. Stage `index`: it is stored, but its document could not be indexed."""

    # Rows come from `items_of`.
    document_id = serializers.UUIDField(read_only=True, allow_null=True)
    stage = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()

    class Meta:
        model = SyncItem
        fields = (
            "id", "external_id", "title", "scope", "document_id", "status", "stage", "error",
            "attempts", "next_retry_at", "seen_at", "created_at",
        )  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField([*SyncItem.Stage.values, "index", ""]))
    def get_stage(self, item: Any) -> str:
        """Where it failed."""
        return item.stage or ("index" if item.index_error is not None else "")

    def get_error(self, item: Any) -> str:
        """Why."""
        return str(item.error or item.index_error or "")


class NodeSerializer(serializers.Serializer[Any]):
    """A place at the source."""

    id = serializers.CharField()
    title = serializers.CharField()
    has_children = serializers.BooleanField()
    selectable = serializers.BooleanField()
