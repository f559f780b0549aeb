"""Routes of changing the embedding model of a base."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Action
from accounts.api.views import TenantAPIView
from config.errors import NotFoundError
from knowledge.access import access_knowledge_base
from knowledge.models import ReEmbedding
from knowledge.services.reembedding import (
    cancel_reembedding,
    find_reembedding,
    kept_until,
    model_before,
    roll_back,
    start_reembedding,
)
from providers.registry import available_models, default_model, embedder_for


class EmbeddingModelSerializer(serializers.Serializer[Any]):
    """A model that a base may use."""

    name = serializers.CharField()
    dimensions = serializers.IntegerField()
    max_tokens = serializers.IntegerField()
    default = serializers.BooleanField(help_text="Whether new knowledge bases use it.")


class EmbeddingModelsView(TenantAPIView):
    """The embedding models of this installation."""

    required_action = Action.READ
    http_method_names = ["get", "head"]

    @extend_schema(
        operation_id="embedding_models_list", responses=EmbeddingModelSerializer(many=True)
    )
    def get(self, request: Request) -> Response:
        """List, the default first."""
        models = [
            {
                "name": name,
                "dimensions": embedder_for(name).dimensions,
                "max_tokens": embedder_for(name).max_tokens,
                "default": name == default_model(),
            }
            for name in available_models()
        ]
        results = EmbeddingModelSerializer(models, many=True).data
        return Response({"next": None, "previous": None, "results": results})


class ReEmbeddingRequestSerializer(serializers.Serializer[ReEmbedding]):
    """What to change to."""

    embedding_model = serializers.CharField(max_length=200)


class ReEmbeddingSerializer(serializers.ModelSerializer[ReEmbedding]):
    """A change of model and how far it is."""

    progress = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()
    roll_back_to = serializers.SerializerMethodField()
    roll_back_until = serializers.SerializerMethodField()

    class Meta:
        model = ReEmbedding
        fields = (
            "id", "status", "from_model", "to_model", "progress", "warnings", "error", "error_code",
            "started_by", "created_at", "started_at", "finished_at", "roll_back_to", "roll_back_until",
        )  # fmt: skip

    def get_progress(self, job: ReEmbedding) -> dict[str, Any]:
        """Vectors done, of how many, at what rate, and seconds left."""
        return progress_of(job)

    def get_warnings(self, job: ReEmbedding) -> list[str]:
        """What the new vectors do not say."""
        return warnings_of(job)

    def get_roll_back_to(self, job: ReEmbedding) -> str | None:
        """The model before, as long as its vectors are kept."""
        return model_before(job.knowledge_base) or None

    def get_roll_back_until(self, job: ReEmbedding) -> str | None:
        """Until when they are kept."""
        until = kept_until(job.knowledge_base)
        return until.isoformat() if until and model_before(job.knowledge_base) else None


def progress_of(job: ReEmbedding) -> dict[str, Any]:
    """How far a change is: `done` of `total` vectors, of which `reused` were there before."""
    progress: dict[str, Any] = {
        "message": job.get_status_display(),
        "done": job.done,
        "total": max(job.total, job.done),
        "reused": job.reused,
        "rate_per_s": None,
        "remaining_s": None,
    }
    computed = job.done - job.reused
    if job.status == ReEmbedding.Status.RUNNING and job.started_at and computed:
        rate = computed / max((timezone.now() - job.started_at).total_seconds(), 0.001)
        left = progress["total"] - job.done
        progress |= {"rate_per_s": round(rate, 2), "remaining_s": round(left / rate, 1)}
    return progress


def warnings_of(job: ReEmbedding) -> list[str]:
    """Remarks on a change that went or goes well."""
    if not job.shortened:
        return []
    remark = (
        f"{job.shortened} passages are longer than {job.to_model} reads: their vectors stand for the "
        "beginning only. Process the documents again after the change to cut them to fit."
    )
    return [remark]


class ReEmbeddingView(TenantAPIView):
    """The change of a base's embedding model that is running, else the last one."""

    action_for = {"GET": Action.READ, "POST": Action.WRITE, "DELETE": Action.WRITE}
    http_method_names = ["get", "post", "delete", "head"]
    serializer_class = ReEmbeddingSerializer

    def get(self, request: Request, reference: str) -> Response:
        """Read, with progress. 404 while the model has never been changed."""
        job = find_reembedding(access_knowledge_base(self.actor, reference, Action.READ))
        if job is None:
            raise NotFoundError("The embedding model of this knowledge base was never changed.")
        return Response(ReEmbeddingSerializer(job).data)

    @extend_schema(request=ReEmbeddingRequestSerializer, responses={202: ReEmbeddingSerializer})
    def post(self, request: Request, reference: str) -> Response:
        """Start. Search uses the old vectors until the new ones are complete."""
        base = access_knowledge_base(self.actor, reference, Action.WRITE)
        body = ReEmbeddingRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        model = body.validated_data["embedding_model"]
        job = start_reembedding(actor=self.actor, base=base, model=model)
        return Response(ReEmbeddingSerializer(job).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses=ReEmbeddingSerializer)
    def delete(self, request: Request, reference: str) -> Response:
        """Cancel. The vectors computed so far are used if the same change starts again soon."""
        base = access_knowledge_base(self.actor, reference, Action.WRITE)
        return Response(ReEmbeddingSerializer(cancel_reembedding(actor=self.actor, base=base)).data)


class RollBackView(TenantAPIView):
    """Going back to the model before."""

    required_action = Action.WRITE
    http_method_names = ["post"]

    @extend_schema(request=None, responses={202: ReEmbeddingSerializer})
    def post(self, request: Request, reference: str) -> Response:
        """Roll back: at once when none of the old vectors is missing, else in the background."""
        base = access_knowledge_base(self.actor, reference, Action.WRITE)
        job = roll_back(actor=self.actor, base=base)
        return Response(ReEmbeddingSerializer(job).data, status=status.HTTP_202_ACCEPTED)
