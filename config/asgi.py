"""The web application, for daphne."""

from __future__ import annotations

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

from config.env import set_default

set_default("DJANGO_SETTINGS_MODULE", "config.settings")

application = ProtocolTypeRouter({"http": get_asgi_application()})
