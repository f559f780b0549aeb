"""Shapes of keys, members and audit events as clients see them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.access import Action
from accounts.models import ApiKey, AuditEvent, Invitation, Membership, Role, Scope


class ApiKeySerializer(serializers.ModelSerializer[ApiKey]):
    """A key without its secret."""

    knowledge_bases = serializers.ListField(
        child=serializers.UUIDField(), source="knowledge_base_ids", allow_null=True
    )
    agent = serializers.UUIDField(source="agent_id", allow_null=True)

    class Meta:
        model = ApiKey
        fields = (
            "id", "prefix", "name", "scopes", "knowledge_bases", "agent", "created_by", "created_at",
            "expires_at", "last_used_at", "revoked_at",
        )  # fmt: skip


class IssuedKeySerializer(ApiKeySerializer):
    """A key with its text, which is shown this once."""

    key = serializers.CharField()

    class Meta(ApiKeySerializer.Meta):
        fields = (*ApiKeySerializer.Meta.fields, "key")  # type: ignore[assignment]


class NewApiKeySerializer(serializers.Serializer[Any]):
    """What a new key shall be."""

    name = serializers.CharField(max_length=200)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(Scope.choices), allow_empty=False, max_length=len(Scope)
    )
    knowledge_bases = serializers.ListField(
        child=serializers.UUIDField(), required=False, allow_null=True, allow_empty=False,
        help_text="Limits the key to these knowledge bases. Absent or null: all of the tenant.",
    )  # fmt: skip
    agent = serializers.UUIDField(required=False, allow_null=True)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)


class MemberSerializer(serializers.ModelSerializer[Membership]):
    """A person in the tenant."""

    email = serializers.EmailField(source="user.email", read_only=True)
    name = serializers.CharField(source="user.get_full_name", read_only=True)

    class Meta:
        model = Membership
        fields = ("id", "email", "name", "role", "created_at")
        read_only_fields = ("id", "created_at")


class RoleSerializer(serializers.Serializer[Any]):
    """A member's new role."""

    role = serializers.ChoiceField(Role.choices)


class NewInvitationSerializer(RoleSerializer):
    """Whom to invite."""

    email = serializers.EmailField()


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """An invitation without its link."""

    class Meta:
        model = Invitation
        fields = ("id", "email", "role", "created_at", "expires_at", "accepted_at")


class AuditEventSerializer(serializers.ModelSerializer[AuditEvent]):
    """What happened."""

    class Meta:
        model = AuditEvent
        fields = ("id", "actor", "action", "target", "target_id", "denied", "detail", "created_at")


class AuditFilterSerializer(serializers.Serializer[Any]):
    """Which events to list."""

    denied = serializers.BooleanField(required=False, allow_null=True, default=None)


class TenantRefSerializer(serializers.Serializer[Any]):
    """The name of a tenant."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    slug = serializers.CharField()


class MeSerializer(serializers.Serializer[Any]):
    """Who calls and what they may."""

    tenant = TenantRefSerializer()
    label = serializers.CharField()  # type: ignore[assignment]  # named like Field's own
    actions = serializers.ListField(
        child=serializers.ChoiceField([action.value for action in Action])
    )
    knowledge_bases = serializers.ListField(child=serializers.UUIDField(), allow_null=True)
