"""Pushing records over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Action
from accounts.api.views import TenantAPIView
from config.errors import FieldError, InvalidInputError
from connectors.access import access_connection
from connectors.api.serializers import principals_field, storable_json
from connectors.base import Record, Text
from connectors.services.push import Outcome, Pushed, push_records

MOST = 500


class RecordSerializer(serializers.Serializer[Record]):
    """One record. It becomes one document; the same `external_id` again is a new version of it."""

    external_id = serializers.CharField(max_length=500, trim_whitespace=False)
    title = serializers.CharField(max_length=500, required=False, default="", allow_blank=True)
    content = serializers.CharField(trim_whitespace=False)
    content_type = serializers.CharField(max_length=200, required=False, default="text/markdown")
    url = serializers.CharField(max_length=2000, required=False, default="", allow_blank=True)
    author = serializers.CharField(max_length=300, required=False, default="", allow_blank=True)
    breadcrumbs = serializers.ListField(
        child=serializers.CharField(max_length=300), required=False, default=list, max_length=50
    )
    created_at = serializers.DateTimeField(required=False, default=None, allow_null=True)
    updated_at = serializers.DateTimeField(required=False, default=None, allow_null=True)
    metadata = serializers.DictField(required=False, default=dict, validators=[storable_json])
    principals = principals_field(
        required=False,
        default=None,
        allow_null=True,
        help_text="Who may read it; left out or null: as the connection says. [] is nobody.",
    )


class PushBodySerializer(serializers.Serializer[Any]):
    """What is sent. Records are checked one by one, so that good ones are kept when others are bad."""

    upsert = serializers.ListField(
        child=serializers.DictField(), required=False, default=list, max_length=MOST
    )
    delete = serializers.ListField(
        child=serializers.CharField(max_length=500, trim_whitespace=False),
        required=False,
        default=list,
        max_length=MOST,
        help_text="External ids.",
    )


class PushSchemaSerializer(PushBodySerializer):
    """Records to store and external ids to delete. A bad record leaves the others whole."""

    upsert = serializers.ListSerializer[Any](  # type: ignore[assignment] # shown, not used
        child=RecordSerializer(), required=False, max_length=MOST
    )


class PushedSerializer(serializers.Serializer[Pushed]):
    """What became of one record or deletion."""

    external_id = serializers.CharField()
    outcome = serializers.ChoiceField([one.value for one in Outcome])
    document_id = serializers.UUIDField(allow_null=True)
    error = serializers.CharField(allow_blank=True)


class PushResultsSerializer(serializers.Serializer[Any]):
    """One result for each record, then one for each deletion, in the order they were sent."""

    results = PushedSerializer(many=True)


class RecordsView(TenantAPIView):
    """The records of a connection that is pushed to."""

    action_for = {"POST": Action.WRITE}

    @extend_schema(
        operation_id="connections_records_push",
        request=PushSchemaSerializer,
        responses=PushResultsSerializer,
    )
    def post(self, request: Request, pk: str) -> Response:
        """Store and delete. It is a 400 when nothing could be done of what was asked."""
        connection = access_connection(self.actor, pk)
        body = PushBodySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        deletions: list[str] = body.validated_data["delete"]
        form = RecordSerializer()  # one for all: binding its fields takes longer than a check
        read = [_read(values, form) for values in body.validated_data["upsert"]]
        records = [one for one in read if isinstance(one, Record)]
        _require_distinct(records, deletions)
        done = push_records(
            actor=self.actor, connection=connection, records=records, deletions=deletions
        )
        results = [done[one.external_id] if isinstance(one, Record) else one for one in read]
        results += [done[name] for name in deletions]
        failed = bool(results) and all(one.outcome == Outcome.FAILED for one in results)
        code = status.HTTP_400_BAD_REQUEST if failed else status.HTTP_200_OK
        return Response(PushResultsSerializer({"results": results}).data, status=code)


def _read(values: dict[str, Any], form: RecordSerializer) -> Record | Pushed:
    """The record as connectors yield it, or what is wrong with it."""
    try:
        facts = dict(form.run_validation(values))
    except serializers.ValidationError as error:
        name = str(values.get("external_id", ""))[:500].encode("utf-8", "replace").decode()
        return Pushed(name, Outcome.FAILED, error=_said(error.detail))
    principals = facts.pop("principals")
    return Record(
        body=Text(facts.pop("content"), facts.pop("content_type")),
        principals=None if principals is None else frozenset(principals),
        **facts,
    )


def _said(detail: Any) -> str:
    """Nested faults as one text."""
    if isinstance(detail, Mapping):
        return " ".join(f"{name}: {_said(inner)}" for name, inner in detail.items())
    return " ".join(map(_said, detail)) if isinstance(detail, list) else str(detail)


def _require_distinct(records: list[Record], deletions: list[str]) -> None:
    names = {record.external_id for record in records}
    faults = [
        FieldError(f"delete.{number}", "Is in upsert too.")
        for number, name in enumerate(deletions)
        if name in names
    ]
    if faults:
        raise InvalidInputError("A record cannot be sent and deleted at once.", faults)
