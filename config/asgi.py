"""The web application, for daphne."""

from __future__ import annotations

from threading import Thread

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application
from django.utils.module_loading import import_string

from config.env import set_default

set_default("DJANGO_SETTINGS_MODULE", "config.settings")
set_default("DATABASE_POOL", "1")

application = ProtocolTypeRouter({"http": get_asgi_application()})

# By name: this room lies under the one that loads the model.
Thread(target=import_string("providers.registry.warm_up"), daemon=True).start()
