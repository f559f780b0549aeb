"""A person, known by mail address."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, UserManager
from django.db import models


class EmailUserManager(UserManager["User"]):
    """Creates people without a user name."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:  # type: ignore[override]
        """A person who can log in."""
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:  # type: ignore[override]
        """An operator of the installation."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


class User(AbstractUser):
    """One person; may belong to several tenants."""

    username = None  # type: ignore[assignment]
    email = models.EmailField("mail address", unique=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects: ClassVar[EmailUserManager] = EmailUserManager()

    def __str__(self) -> str:
        return self.email
