"""Measurements of quality and speed. They print a table and write `benchmarks/results/*.json`.

Django is set up here, before any module of the product is imported, with a data folder of its own.
"""

import django
from django.apps import apps

from config.env import set_default

if not apps.ready:  # tests have set it up their own way
    set_default("GROUNDWORK_PROFILE", "development")
    set_default("GROUNDWORK_DATA", ".data-bench")
    set_default("GROUNDWORK_EMBED_THREADS", "2")
    set_default("LOG_LEVEL", "WARNING")
    set_default("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
