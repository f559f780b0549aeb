"""Settings of the test run: the real services, in a data folder of their own, with a fast hasher."""

from config.env import set_default

set_default("GROUNDWORK_PROFILE", "development")
set_default("GROUNDWORK_DATA", ".data-test")

from config.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
# Counters of one worker must not reach another's tests.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
WHITENOISE_AUTOREFRESH = True  # looks files up when asked, so that none need be collected first
