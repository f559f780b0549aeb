"""A tenant: one organisation, seeing nothing of any other."""

from __future__ import annotations

from django.db import models

from accounts.tenancy import new_id


class Tenant(models.Model):
    """The owner of everything else."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=100, unique=True, allow_unicode=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
