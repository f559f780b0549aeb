"""Synonyms over HTTP."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Action
from accounts.api.views import TenantAPIView
from config.errors import FieldError, InvalidInputError, NotFoundError
from knowledge.access import access_knowledge_base
from knowledge.models import KnowledgeBase
from search.models import SynonymSet
from search.services.synonym_files import MAX_FILE_BYTES, export_synonyms, import_synonyms
from search.services.synonyms import (
    access_synonym_set,
    change_synonym_set,
    create_synonym_set,
    delete_synonym_set,
    visible_synonym_sets,
)


class SynonymSetSerializer(serializers.ModelSerializer[SynonymSet]):
    """A set of synonyms; `knowledge_base` null: for all of them."""

    knowledge_base = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)

    class Meta:
        model = SynonymSet
        fields = (
            "id", "knowledge_base", "terms", "one_way", "enabled", "note", "created_by", "created_at",
            "updated_at",
        )  # fmt: skip
        read_only_fields = fields


class SynonymChangeSerializer(serializers.Serializer[SynonymSet]):
    """What may be changed."""

    knowledge_base = serializers.CharField(
        required=False, allow_null=True, help_text="Slug or id; null: for all knowledge bases."
    )
    terms = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="2 to 20 words or short phrases, each of at most 100 characters.",
    )
    one_way = serializers.BooleanField(
        required=False, help_text="The first term finds the others, but they do not find it."
    )
    enabled = serializers.BooleanField(required=False)
    note = serializers.CharField(required=False, allow_blank=True)


class NewSynonymSetSerializer(SynonymChangeSerializer):
    """A new set."""

    terms = serializers.ListField(
        child=serializers.CharField(),
        help_text="2 to 20 words or short phrases, each of at most 100 characters.",
    )


class SynonymFileSerializer(serializers.Serializer[Any]):
    """A CSV file. docs/search.md shows one."""

    file = serializers.FileField()


class ImportedRowSerializer(serializers.Serializer[Any]):
    """What became of a row of the file."""

    row = serializers.IntegerField()
    outcome = serializers.ChoiceField(["created", "changed", "unchanged"], required=False)
    id = serializers.UUIDField(required=False)
    errors = serializers.ListField(  # type: ignore[assignment] # a field takes the property's name
        child=serializers.DictField(), required=False
    )


class ImportSerializer(serializers.Serializer[Any]):
    """What became of all rows."""

    results = ImportedRowSerializer(many=True)


class SynonymSetsView(TenantAPIView):
    """The sets of the tenant."""

    action_for = {"GET": Action.WRITE, "POST": Action.WRITE}
    serializer_class = SynonymSetSerializer

    @extend_schema(responses=SynonymSetSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List, newest first; `knowledge_base` narrows it."""
        sets = visible_synonym_sets(self.actor)
        if name := request.query_params.get("knowledge_base"):
            base = access_knowledge_base(self.actor, name, Action.WRITE)
            sets = sets.filter(knowledge_base=base)
        return self.paginate(sets, SynonymSetSerializer)

    @extend_schema(request=NewSynonymSetSerializer, responses={201: SynonymSetSerializer})
    def post(self, request: Request) -> Response:
        """Create; it holds from the next search on."""
        body = NewSynonymSetSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        created = create_synonym_set(actor=self.actor, **_fields(self, body.validated_data))
        return Response(SynonymSetSerializer(created).data, status=status.HTTP_201_CREATED)


class SynonymSetView(TenantAPIView):
    """One set."""

    action_for = {"GET": Action.WRITE, "PATCH": Action.WRITE, "DELETE": Action.WRITE}
    serializer_class = SynonymSetSerializer

    def get(self, request: Request, pk: str) -> Response:
        """Read."""
        return Response(SynonymSetSerializer(access_synonym_set(self.actor, pk)).data)

    @extend_schema(request=SynonymChangeSerializer, responses=SynonymSetSerializer)
    def patch(self, request: Request, pk: str) -> Response:
        """Change."""
        synonyms = access_synonym_set(self.actor, pk)
        body = SynonymChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = _fields(self, body.validated_data)
        change_synonym_set(actor=self.actor, synonyms=synonyms, **fields)
        return Response(SynonymSetSerializer(synonyms).data)

    def delete(self, request: Request, pk: str) -> Response:
        """Forget it."""
        delete_synonym_set(actor=self.actor, synonyms=access_synonym_set(self.actor, pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class SynonymImportView(TenantAPIView):
    """Many sets out of a file."""

    action_for = {"POST": Action.WRITE}
    serializer_class = ImportSerializer

    @extend_schema(request={"multipart/form-data": SynonymFileSerializer})
    def post(self, request: Request) -> Response:
        """One result for each row; the good ones are kept when others are bad."""
        file = request.FILES.get("file")
        if file is None:
            fault = FieldError("file", "Attach a CSV file.")
            raise InvalidInputError("The form holds no file.", [fault])
        rows = import_synonyms(self.actor, file.read(MAX_FILE_BYTES + 1))
        results = [
            {"row": row.row, "errors": [_shown(error) for error in row.errors]}
            if row.errors
            else {"row": row.row, "outcome": row.outcome, "id": str(row.set_id)}
            for row in rows
        ]
        kept = not rows or any(not row.errors for row in rows)
        code = status.HTTP_200_OK if kept else status.HTTP_400_BAD_REQUEST
        return Response({"results": results}, status=code)


class SynonymExportView(TenantAPIView):
    """All sets as a file."""

    action_for = {"GET": Action.WRITE}

    @extend_schema(responses={(200, "text/csv"): OpenApiTypes.STR})
    def get(self, request: Request) -> HttpResponse:
        """CSV, as it can be imported."""
        answer = HttpResponse(export_synonyms(self.actor), content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = 'attachment; filename="synonyms.csv"'
        return answer


def _fields(view: TenantAPIView, values: dict[str, Any]) -> dict[str, Any]:
    """The values with the named base in the place of its name."""
    if values.get("knowledge_base") is None:
        return dict(values)
    return {**values, "knowledge_base": _base(view, values["knowledge_base"])}


def _base(view: TenantAPIView, name: str) -> KnowledgeBase:
    try:
        return access_knowledge_base(view.actor, name, Action.WRITE)
    except NotFoundError as error:
        fault = FieldError("knowledge_base", f"Unknown: {name}.")
        raise InvalidInputError("There is no such knowledge base.", [fault]) from error


def _shown(error: FieldError) -> dict[str, str]:
    return {"field": error.field, "message": error.message}
