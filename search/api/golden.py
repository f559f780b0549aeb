"""Golden queries and their runs over HTTP. The views open scopes themselves: a check embeds the query,
and no database connection is held meanwhile."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Action
from accounts.api.views import TenantAPIView
from accounts.tenancy import tenant_scope
from config.errors import FieldError, InvalidInputError
from knowledge.access import access_chunk, access_document, access_knowledge_base
from knowledge.models import Chunk
from search.models import GoldenQuery, GoldenResult, GoldenRun
from search.request import Strategy
from search.services.golden import (
    access_golden_query,
    access_golden_run,
    change_golden_query,
    delete_golden_query,
    find_quoted_chunk,
    refresh_golden_query,
    save_golden_query,
    visible_golden_queries,
    visible_golden_runs,
)
from search.services.golden_runs import results_of, run_golden_queries

# What a check depends on; a changed note needs none.
_CHECKED = {"query", "strategy", "filter", "within", "quote"}


class GoldenQuerySerializer(serializers.ModelSerializer[GoldenQuery]):
    """A golden query and what its last check found."""

    knowledge_base = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)

    class Meta:
        model = GoldenQuery
        fields = (
            "id", "knowledge_base", "query", "strategy", "filter", "within", "document_id",
            "document_title", "heading", "quote", "enabled", "note", "status", "rank",
            "previous_rank", "reason", "checked_at", "created_by", "created_at", "updated_at",
        )  # fmt: skip
        read_only_fields = fields


class GoldenChangeSerializer(serializers.Serializer[GoldenQuery]):
    """What may be changed."""

    query = serializers.CharField(required=False, trim_whitespace=False)
    strategy = serializers.ChoiceField(list(Strategy), required=False)
    filter = serializers.DictField(required=False, allow_null=True)
    within = serializers.IntegerField(required=False)
    quote = serializers.CharField(required=False, trim_whitespace=False)
    enabled = serializers.BooleanField(required=False)
    note = serializers.CharField(required=False, allow_blank=True)


class NewGoldenQuerySerializer(GoldenChangeSerializer):
    """The question, and the passage: a chunk, or a document with a quote of it."""

    query = serializers.CharField(trim_whitespace=False)
    chunk_id = serializers.UUIDField(required=False, allow_null=True, default=None)
    document_id = serializers.UUIDField(required=False, allow_null=True, default=None)


class GoldenFilterSerializer(serializers.Serializer[Any]):
    """Narrows the list."""

    knowledge_base = serializers.CharField(required=False, help_text="Slug or id.")
    status = serializers.ChoiceField(["green", "red", "unknown"], required=False)


class GoldenResultSerializer(serializers.ModelSerializer[GoldenResult]):
    """What a run found for one golden query; `first_…` is what stood first."""

    query = serializers.CharField(source="golden_query.query")

    class Meta:
        model = GoldenResult
        fields = (
            "golden_query_id", "query", "status", "rank", "previous_status", "previous_rank",
            "change", "reason", "first_chunk_id", "first_title", "first_snippet",
        )  # fmt: skip


class GoldenRunSerializer(serializers.ModelSerializer[GoldenRun]):
    """One run over the golden queries of a base."""

    knowledge_base = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)

    class Meta:
        model = GoldenRun
        fields = (
            "id", "knowledge_base", "trigger", "started_by", "started_at", "finished_at", "total",
            "green", "red", "unknown", "embedding_model", "newest_indexed_at",
        )  # fmt: skip


class GoldenRunResultsSerializer(GoldenRunSerializer):
    """The same with the results, what changed first."""

    results = serializers.SerializerMethodField()

    class Meta(GoldenRunSerializer.Meta):
        fields = (*GoldenRunSerializer.Meta.fields, "results")  # type: ignore[assignment]

    def get_results(self, run: GoldenRun) -> list[dict[str, Any]]:
        """Every golden query that took part."""
        rows: list[dict[str, Any]] = GoldenResultSerializer(results_of(run), many=True).data  # type: ignore[assignment]
        return rows


class GoldenQueriesView(TenantAPIView):
    """The golden queries of the bases the caller keeps."""

    action_for = {"GET": Action.WRITE, "POST": Action.WRITE}
    scoped = False
    serializer_class = GoldenQuerySerializer

    @extend_schema(parameters=[GoldenFilterSerializer], responses=GoldenQuerySerializer(many=True))
    def get(self, request: Request) -> Response:
        """List, newest first."""
        wanted = GoldenFilterSerializer(data=request.query_params)
        wanted.is_valid(raise_exception=True)
        with tenant_scope(self.actor.tenant_id):
            queries = visible_golden_queries(self.actor)
            if name := wanted.validated_data.get("knowledge_base"):
                base = access_knowledge_base(self.actor, name, Action.WRITE)
                queries = queries.filter(knowledge_base=base)
            if state := wanted.validated_data.get("status"):
                queries = queries.filter(status=state)
            return self.paginate(queries, GoldenQuerySerializer)

    @extend_schema(request=NewGoldenQuerySerializer, responses={201: GoldenQuerySerializer})
    def post(self, request: Request) -> Response:
        """Save a question with the passage it must find, and check it at once."""
        body = NewGoldenQuerySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        with tenant_scope(self.actor.tenant_id):
            facts = dict(body.validated_data)
            chunk = self._chunk(facts.pop("chunk_id"), facts.pop("document_id"), facts.get("quote"))
            golden = save_golden_query(actor=self.actor, chunk=chunk, **facts)
        refresh_golden_query(golden)
        return Response(GoldenQuerySerializer(golden).data, status=status.HTTP_201_CREATED)

    def _chunk(self, chunk_id: Any, document_id: Any, quote: str | None) -> Chunk:
        if chunk_id:
            return access_chunk(self.actor, chunk_id, Action.WRITE)
        if document_id and quote:
            document = access_document(self.actor, document_id, Action.WRITE)
            return find_quoted_chunk(document, quote)
        raise InvalidInputError(
            "Say which passage is wanted.",
            [FieldError("chunk_id", "Give a chunk_id, or a document_id with a quote.")],
        )


class GoldenQueryView(TenantAPIView):
    """One golden query."""

    action_for = {"GET": Action.WRITE, "PATCH": Action.WRITE, "DELETE": Action.WRITE}
    scoped = False
    serializer_class = GoldenQuerySerializer

    def get(self, request: Request, pk: str) -> Response:
        """With what its last check found."""
        with tenant_scope(self.actor.tenant_id):
            golden = access_golden_query(self.actor, pk)
            return Response(GoldenQuerySerializer(golden).data)

    @extend_schema(request=GoldenChangeSerializer, responses=GoldenQuerySerializer)
    def patch(self, request: Request, pk: str) -> Response:
        """Change it; it is checked at once where the change matters to the search."""
        body = GoldenChangeSerializer(data=request.data)
        with tenant_scope(self.actor.tenant_id):
            golden = access_golden_query(self.actor, pk)
            body.is_valid(raise_exception=True)
            change_golden_query(actor=self.actor, golden=golden, **body.validated_data)
        if _CHECKED & set(body.validated_data):
            refresh_golden_query(golden)
        return Response(GoldenQuerySerializer(golden).data)

    def delete(self, request: Request, pk: str) -> Response:
        """Forget it with its results."""
        with tenant_scope(self.actor.tenant_id):
            golden = access_golden_query(self.actor, pk)
            delete_golden_query(actor=self.actor, golden=golden)
        return Response(status=status.HTTP_204_NO_CONTENT)


class GoldenRunsView(TenantAPIView):
    """The runs of a base."""

    action_for = {"GET": Action.WRITE, "POST": Action.WRITE}
    scoped = False
    serializer_class = GoldenRunSerializer

    @extend_schema(responses=GoldenRunSerializer(many=True))
    def get(self, request: Request, reference: str) -> Response:
        """List, newest first; the last fifty are kept."""
        with tenant_scope(self.actor.tenant_id):
            base = access_knowledge_base(self.actor, reference, Action.WRITE)
            runs = visible_golden_runs(self.actor).filter(knowledge_base=base)
            return self.paginate(runs, GoldenRunSerializer, ordering=("-started_at", "-id"))

    @extend_schema(request=None, responses={201: GoldenRunResultsSerializer})
    def post(self, request: Request, reference: str) -> Response:
        """Run now and answer with the results."""
        with tenant_scope(self.actor.tenant_id):
            base = access_knowledge_base(self.actor, reference, Action.WRITE)
        run = run_golden_queries(actor=self.actor, base=base)
        with tenant_scope(self.actor.tenant_id):
            answer = GoldenRunResultsSerializer(run).data
        return Response(answer, status=status.HTTP_201_CREATED)


class GoldenRunView(TenantAPIView):
    """One run."""

    action_for = {"GET": Action.WRITE}
    serializer_class = GoldenRunResultsSerializer

    def get(self, request: Request, pk: str) -> Response:
        """With its results, what changed first."""
        return Response(GoldenRunResultsSerializer(access_golden_run(self.actor, pk)).data)
