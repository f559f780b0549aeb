"""Routes of bases, documents and chunks: parse, call one access function and one service, render."""

from __future__ import annotations

import io
import json
from typing import Any

from django.http import FileResponse, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Action, Actor
from accounts.api.views import TenantAPIView
from config.errors import AppError, FieldError, InvalidInputError
from knowledge.access import (
    access_chunk,
    access_document,
    access_knowledge_base,
    visible_chunks,
    visible_documents,
    visible_knowledge_bases,
)
from knowledge.api.serializers import (
    ChunkChangeSerializer,
    ChunkSerializer,
    DocumentPatchSerializer,
    DocumentSerializer,
    KnowledgeBaseSerializer,
    NewDocumentSerializer,
)
from knowledge.counts import with_counts
from knowledge.models import KnowledgeBase
from knowledge.services.chunks import edit_chunk
from knowledge.services.documents import (
    Added,
    NewDocument,
    add_document,
    delete_documents,
    read_original,
    reprocess_documents,
    text_filename,
    update_document,
)
from knowledge.services.knowledge_bases import (
    create_knowledge_base,
    delete_knowledge_base,
    update_knowledge_base,
)


class KnowledgeBasesView(TenantAPIView):
    """The bases of the tenant."""

    action_for = {"GET": Action.READ, "POST": Action.WRITE}
    serializer_class = KnowledgeBaseSerializer

    @extend_schema(responses=KnowledgeBaseSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List, newest first."""
        return self.paginate(
            with_counts(visible_knowledge_bases(self.actor)), KnowledgeBaseSerializer
        )

    def post(self, request: Request) -> Response:
        """Create."""
        body = KnowledgeBaseSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        base = create_knowledge_base(actor=self.actor, **body.validated_data)
        return Response(KnowledgeBaseSerializer(base).data, status=status.HTTP_201_CREATED)


class KnowledgeBaseView(TenantAPIView):
    """One base, by id or slug."""

    action_for = {
        "GET": Action.READ,
        "PUT": Action.WRITE,
        "PATCH": Action.WRITE,
        "DELETE": Action.WRITE,
    }
    serializer_class = KnowledgeBaseSerializer

    @extend_schema(operation_id="knowledge_base_retrieve")
    def get(self, request: Request, reference: str) -> Response:
        """Read."""
        base = access_knowledge_base(self.actor, reference, Action.READ)
        return self._render(self.actor, base)

    def patch(self, request: Request, reference: str) -> Response:
        """Change some fields."""
        base = access_knowledge_base(self.actor, reference, Action.WRITE)
        body = KnowledgeBaseSerializer(data=request.data, partial=request.method == "PATCH")
        body.is_valid(raise_exception=True)
        update_knowledge_base(actor=self.actor, base=base, **body.validated_data)
        return self._render(self.actor, base)

    put = patch

    def delete(self, request: Request, reference: str) -> Response:
        """Delete with everything in it."""
        base = access_knowledge_base(self.actor, reference, Action.WRITE)
        delete_knowledge_base(actor=self.actor, base=base)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _render(self, actor: Actor, base: KnowledgeBase) -> Response:
        counted = with_counts(visible_knowledge_bases(actor)).get(id=base.id)
        return Response(KnowledgeBaseSerializer(counted).data)


class DocumentsView(TenantAPIView):
    """The documents of a base."""

    action_for = {"GET": Action.READ, "POST": Action.WRITE}
    serializer_class = DocumentSerializer

    @extend_schema(responses=DocumentSerializer(many=True))
    def get(self, request: Request, reference: str) -> Response:
        """List, newest first; `status` and `external_id` narrow it."""
        base = access_knowledge_base(self.actor, reference, Action.READ)
        documents = visible_documents(self.actor).filter(knowledge_base=base)
        for name in ("status", "external_id"):
            if value := request.query_params.get(name):
                documents = documents.filter(**{name: value})
        documents = documents.select_related("knowledge_base").prefetch_related("replacements")
        return self.paginate(documents, DocumentSerializer)

    @extend_schema(request=NewDocumentSerializer, responses={202: DocumentSerializer})
    def post(self, request: Request, reference: str) -> Response:
        """Add: files in a multipart form (one result each), or one JSON document."""
        base = access_knowledge_base(self.actor, reference, Action.WRITE)
        files = request.FILES.getlist("file")
        if files:
            return self._add_files(request, base, files)
        if request.content_type.startswith("multipart/"):
            raise InvalidInputError(
                "The form holds no file.", [FieldError("file", "Attach one or more files.")]
            )
        body = NewDocumentSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        values = body.validated_data
        if not values["content"].strip():
            raise InvalidInputError(
                "The document is empty.", [FieldError("content", "Must not be empty.")]
            )
        added = add_document(
            actor=self.actor,
            base=base,
            stream=io.BytesIO(values["content"].encode("utf-8", "replace")),
            new=_new_document(
                values, filename=_filename(values), content_type=values["content_type"]
            ),
        )
        return Response(_added(added), status=status.HTTP_202_ACCEPTED)

    def _add_files(self, request: Request, base: KnowledgeBase, files: list[Any]) -> Response:
        form: dict[str, Any] = {key: value for key, value in request.POST.items() if key != "file"}
        for name in ("metadata", "principals"):
            if isinstance(form.get(name), str):
                form[name] = _parse_json(name, form[name])
        body = NewDocumentSerializer(data=form)
        body.is_valid(raise_exception=True)
        values = body.validated_data
        if len(files) > 1:
            for name in ("external_id", "title"):
                if values[name]:
                    raise InvalidInputError(
                        f"{name} names one document; send one file with it.",
                        [FieldError(name, "Not with several files.")],
                    )
        results = [self._add_file(self.actor, base, file, values) for file in files]
        kept = any("error" not in result for result in results)
        if len(results) == 1 and kept:
            return Response(
                {**results[0]["document"], "outcome": results[0]["outcome"], "results": results},
                status=status.HTTP_202_ACCEPTED,
            )
        code = status.HTTP_202_ACCEPTED if kept else status.HTTP_400_BAD_REQUEST
        return Response({"results": results}, status=code)

    def _add_file(
        self, actor: Actor, base: KnowledgeBase, file: Any, values: dict[str, Any]
    ) -> dict[str, Any]:
        """One file's result; a bad one leaves the others whole."""
        try:
            added = add_document(
                actor=actor,
                base=base,
                stream=file.file,
                new=_new_document(values, filename=file.name),
            )
        except AppError as error:
            return {"filename": file.name, "error": {"code": error.code, "message": error.message}}
        return {
            "filename": file.name,
            "outcome": added.outcome,
            "document": DocumentSerializer(added.document).data,
        }


class DocumentView(TenantAPIView):
    """One document."""

    action_for = {"GET": Action.READ, "PATCH": Action.WRITE, "DELETE": Action.WRITE}
    serializer_class = DocumentSerializer

    def get(self, request: Request, pk: str) -> Response:
        """Read, with live progress."""
        return Response(DocumentSerializer(access_document(self.actor, pk, Action.READ)).data)

    @extend_schema(request=DocumentPatchSerializer, responses=DocumentSerializer)
    def patch(self, request: Request, pk: str) -> Response:
        """Change title, metadata, principals, boost or address."""
        document = access_document(self.actor, pk, Action.WRITE)
        body = DocumentPatchSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        update_document(actor=self.actor, document=document, **body.validated_data)
        return Response(DocumentSerializer(document).data)

    def delete(self, request: Request, pk: str) -> Response:
        """Remove every trace at once."""
        document = access_document(self.actor, pk, Action.WRITE)
        delete_documents(actor=self.actor, documents=[document])
        return Response(status=status.HTTP_204_NO_CONTENT)


class DocumentChunksView(TenantAPIView):
    """The chunks of a document, in order."""

    action_for = {"GET": Action.READ}
    serializer_class = ChunkSerializer

    @extend_schema(responses=ChunkSerializer(many=True))
    def get(self, request: Request, pk: str) -> Response:
        """List."""
        document = access_document(self.actor, pk, Action.READ)
        chunks = visible_chunks(self.actor).filter(document=document)
        return self.paginate(chunks, ChunkSerializer, ordering=("ordinal", "id"))


class ChunkView(TenantAPIView):
    """One chunk."""

    action_for = {"GET": Action.READ, "PATCH": Action.WRITE}
    serializer_class = ChunkSerializer

    def get(self, request: Request, pk: str) -> Response:
        """Read."""
        return Response(ChunkSerializer(access_chunk(self.actor, pk, Action.READ)).data)

    @extend_schema(request=ChunkChangeSerializer, responses=ChunkSerializer)
    def patch(self, request: Request, pk: str) -> Response:
        """Correct the text or switch the chunk on or off; searched anew at once."""
        chunk = access_chunk(self.actor, pk, Action.WRITE)
        body = ChunkChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        edit_chunk(actor=self.actor, chunk=chunk, **body.validated_data)
        return Response(ChunkSerializer(chunk).data)


class DocumentOriginalView(TenantAPIView):
    """The stored bytes of a document."""

    action_for = {"GET": Action.READ}

    @extend_schema(responses=OpenApiTypes.BINARY)
    def get(self, request: Request, pk: str) -> FileResponse:
        """Download. Always as an attachment: an uploaded page must not run in our origin."""
        document = access_document(self.actor, pk, Action.READ)
        return FileResponse(
            read_original(document),
            as_attachment=True,
            filename=document.filename or "original",
            content_type="application/octet-stream",
        )


class DocumentTextView(TenantAPIView):
    """The extracted text of a document, which chunk offsets count in."""

    action_for = {"GET": Action.READ}

    @extend_schema(responses=OpenApiTypes.STR)
    def get(self, request: Request, pk: str) -> HttpResponse:
        """Plain text."""
        document = access_document(self.actor, pk, Action.READ)
        return HttpResponse(document.extracted_text, content_type="text/plain; charset=utf-8")


class DocumentReprocessView(TenantAPIView):
    """Reading, cutting and embedding anew."""

    action_for = {"POST": Action.WRITE}

    @extend_schema(request=None, responses={202: DocumentSerializer})
    def post(self, request: Request, pk: str) -> Response:
        """Queue; search sees the old chunks until the new ones are done."""
        document = access_document(self.actor, pk, Action.WRITE)
        reprocess_documents(actor=self.actor, documents=[document])
        return Response(DocumentSerializer(document).data, status=status.HTTP_202_ACCEPTED)


def _new_document(values: dict[str, Any], *, filename: str, content_type: str = "") -> NewDocument:
    chosen = {
        name: values[name]
        for name in (
            "title",
            "source_uri",
            "external_id",
            "metadata",
            "principals",
            "created_at",
            "updated_at",
        )
        if values.get(name)
    }
    return NewDocument(filename=filename, content_type=content_type, **chosen)


def _filename(values: dict[str, Any]) -> str:
    name = values["title"] or values["external_id"] or "document"
    return text_filename(name, values["content_type"])


def _parse_json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} is not JSON.", [FieldError(name, "Must be JSON.")]
        ) from error


def _added(added: Added) -> dict[str, Any]:
    return {**DocumentSerializer(added.document).data, "outcome": added.outcome}
