"""Routes of webhooks: parse, call one access function and one service, render."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access import Action, access_delivery, access_webhook, visible_webhooks
from accounts.api.views import TenantViewSet
from accounts.models import WebhookDelivery, WebhookEndpoint
from accounts.services.webhooks import (
    CHOOSABLE,
    create_webhook,
    delete_webhook,
    ping_webhook,
    replay_delivery,
    update_webhook,
)


class WebhookSerializer(serializers.ModelSerializer[WebhookEndpoint]):
    """A webhook without its secret."""

    class Meta:
        model = WebhookEndpoint
        fields = (
            "id", "url", "description", "event_types", "enabled", "failing_since", "disabled_reason",
            "created_by", "created_at",
        )  # fmt: skip


class CreatedWebhookSerializer(WebhookSerializer):
    """A webhook with its secret, which is shown this once."""

    secret = serializers.CharField()

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")  # type: ignore[assignment]


class NewWebhookSerializer(serializers.Serializer[Any]):
    """What a webhook shall be."""

    url = serializers.CharField(max_length=2000)
    event_types = serializers.ListField(
        child=serializers.ChoiceField([event.value for event in CHOOSABLE]),
        allow_empty=False,
        max_length=len(CHOOSABLE),
    )
    description = serializers.CharField(max_length=200, required=False, allow_blank=True)


class WebhookChangeSerializer(NewWebhookSerializer):
    """What to change; what is left out stays."""

    enabled = serializers.BooleanField(required=False)


class DeliverySerializer(serializers.ModelSerializer[WebhookDelivery]):
    """One event for one webhook."""

    class Meta:
        model = WebhookDelivery
        fields = (
            "id", "event_id", "event_type", "payload", "status", "attempts", "status_code", "error",
            "next_attempt_at", "attempted_at", "created_at",
        )  # fmt: skip


class WebhookViewSet(TenantViewSet):
    """The webhooks of the tenant."""

    required_action = Action.ADMIN
    shows_secret = True
    serializer_class = WebhookSerializer

    def list(self, request: Request) -> Response:
        """List, newest first, without secrets."""
        return self.paginate(visible_webhooks(self.actor), WebhookSerializer)

    @extend_schema(request=NewWebhookSerializer, responses={201: CreatedWebhookSerializer})
    def create(self, request: Request) -> Response:
        """Make one. Its secret is in this answer and nowhere else."""
        body = NewWebhookSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        endpoint, secret = create_webhook(actor=self.actor, **body.validated_data)
        return Response(
            {**WebhookSerializer(endpoint).data, "secret": secret},
            status=status.HTTP_201_CREATED,
            headers={"Cache-Control": "no-store"},
        )

    @extend_schema(responses=WebhookSerializer)
    def retrieve(self, request: Request, pk: UUID) -> Response:
        """One of them."""
        return Response(WebhookSerializer(access_webhook(self.actor, pk)).data)

    @extend_schema(request=WebhookChangeSerializer, responses=WebhookSerializer)
    def partial_update(self, request: Request, pk: UUID) -> Response:
        """Change it; enabling it forgets its failures."""
        endpoint = access_webhook(self.actor, pk)
        body = WebhookChangeSerializer(data=request.data, partial=True)
        body.is_valid(raise_exception=True)
        changed = update_webhook(actor=self.actor, endpoint=endpoint, **body.validated_data)
        return Response(WebhookSerializer(changed).data)

    def destroy(self, request: Request, pk: UUID) -> Response:
        """Remove it with its log."""
        delete_webhook(actor=self.actor, endpoint=access_webhook(self.actor, pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class WebhookDeliveryViewSet(TenantViewSet):
    """What webhooks were told."""

    required_action = Action.ADMIN
    serializer_class = DeliverySerializer

    def list(self, request: Request, pk: UUID) -> Response:
        """The log of a webhook, newest first; kept for 30 days."""
        endpoint = access_webhook(self.actor, pk)
        return self.paginate(WebhookDelivery.objects.filter(endpoint=endpoint), DeliverySerializer)

    @extend_schema(request=None, responses={202: DeliverySerializer})
    def ping(self, request: Request, pk: UUID) -> Response:
        """Send a test."""
        delivery = ping_webhook(actor=self.actor, endpoint=access_webhook(self.actor, pk))
        return Response(DeliverySerializer(delivery).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses=DeliverySerializer)
    def retrieve(self, request: Request, pk: UUID) -> Response:
        """One delivery."""
        return Response(DeliverySerializer(access_delivery(self.actor, pk)).data)

    @extend_schema(request=None, responses={202: DeliverySerializer})
    def replay(self, request: Request, pk: UUID) -> Response:
        """Send an event once more, under the id it had."""
        delivery = replay_delivery(actor=self.actor, delivery=access_delivery(self.actor, pk))
        return Response(DeliverySerializer(delivery).data, status=status.HTTP_202_ACCEPTED)
