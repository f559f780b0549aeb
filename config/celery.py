"""The Celery application: `celery -A config.celery worker|beat`."""

from __future__ import annotations

from celery import Celery
from django.conf import settings

from config.env import set_default

set_default("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("groundwork")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(lambda: [name for name in settings.INSTALLED_APPS if "." not in name])
