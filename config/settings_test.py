"""Settings of the test run: the real services, in a data folder of their own, with a fast hasher."""

from config.env import set_default

set_default("GROUNDWORK_PROFILE", "development")
set_default("GROUNDWORK_DATA", ".data-test")

from config.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
