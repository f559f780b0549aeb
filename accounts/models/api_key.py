"""Keys for programs."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from accounts.tenancy import TenantModel


class Scope(models.TextChoices):
    """The verbs a key may use. `principals` lets it say on whose behalf it searches."""

    SEARCH = "search"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    PRINCIPALS = "principals"


class ApiKey(TenantModel):
    """One key. The secret is shown once; only its SHA-256 is kept (it has 256 random bits, so a slow
    hash would add nothing). The prefix finds the row, so checking costs the same however many there are."""

    name = models.CharField(max_length=200, help_text="What uses this key.")
    prefix = models.CharField(max_length=16, editable=False, db_index=True)
    secret_hash = models.CharField(max_length=64, editable=False)
    scopes = ArrayField(models.CharField(max_length=12, choices=Scope))
    knowledge_base_ids = ArrayField(
        models.UUIDField(),
        null=True,
        blank=True,
        help_text="Limits the key to these knowledge bases. Empty: all of the tenant.",
    )
    agent_id = models.UUIDField(null=True, blank=True, help_text="The agent this key belongs to.")
    created_by = models.EmailField(editable=False, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Empty: never.")
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta(TenantModel.Meta):
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} (gw_{self.prefix}…)"

    def is_valid(self) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (
            self.expires_at is None or self.expires_at > timezone.now()
        )
