"""Settings of every process, read from the environment; the table of variables is in docs/operations.md.

Defaults are safe for production; `make up` sets GROUNDWORK_PROFILE=development.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from celery.schedules import crontab
from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static
from django.urls import reverse_lazy
from psycopg.conninfo import conninfo_to_dict

from config.embedded.paths import DataFolder
from config.env import env_bool, env_int, env_list, env_str

BASE_DIR = Path(__file__).resolve().parent.parent

# --- profile -----------------------------------------------------------------------------------
PROFILE = env_str(
    "GROUNDWORK_PROFILE",
    "production",
    help="`production` or `development`. Development allows plain HTTP on this machine, makes its own secret key and prints mail to the log.",
)
if PROFILE not in {"production", "development"}:
    raise ImproperlyConfigured(
        f"GROUNDWORK_PROFILE must be production or development, not {PROFILE!r}"
    )
DEVELOPMENT = PROFILE == "development"
DEBUG = env_bool("DEBUG", default=False, help="Django's debug pages. Never in production.")

GROUNDWORK_DATA = DataFolder(
    Path(
        env_str(
            "GROUNDWORK_DATA",
            str(BASE_DIR / ".data"),
            help="Folder for the embedded database, uploaded originals, model cache and first-run file.",
        )
    )
)
SECRET_KEY = env_str(
    "SECRET_KEY",
    help="Signs sessions and tokens; required in production. `SECRET_KEY_FILE` reads it from a file.",
)
if not SECRET_KEY and DEVELOPMENT:
    SECRET_KEY = GROUNDWORK_DATA.secret_key()
if not SECRET_KEY:
    raise ImproperlyConfigured(
        "SECRET_KEY is not set. Set it (or SECRET_KEY_FILE) to a long random string; "
        "for a trial on this machine use `make up`, which makes its own."
    )

GROUNDWORK_PORT = env_int("GROUNDWORK_PORT", 8000, help="Port of the web server.", minimum=1)
GROUNDWORK_BIND = env_str(
    "GROUNDWORK_BIND",
    "127.0.0.1",
    help="Address the web server listens on; 0.0.0.0 in a container.",
)
GROUNDWORK_URL = env_str(
    "GROUNDWORK_URL",
    f"http://localhost:{GROUNDWORK_PORT}",
    help="The address people use in their browser, for links in mail and results.",
).rstrip("/")
ALLOWED_HOSTS = env_list(
    "ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]", help="Host names the web server answers to."
)
CSRF_TRUSTED_ORIGINS = env_list(
    "CSRF_TRUSTED_ORIGINS", GROUNDWORK_URL, help="Origins (with scheme) that forms may come from."
)

# --- database, broker --------------------------------------------------------------------------
DATABASE_URL = env_str(
    "DATABASE_URL",
    help="postgresql://user:password@host:5432/name of an outside PostgreSQL 15+ with pgvector 0.7+. Empty: the embedded server.",
)
REDIS_URL = env_str(
    "REDIS_URL",
    help="redis://host:6379/0 of an outside Valkey or Redis. Empty: the embedded server.",
)
# Under ASGI each request has connections of its own, so only a pool keeps them alive.
_POOL = {"min_size": 1, "max_size": 16, "timeout": 30}
EMBEDDED_DATABASE = not DATABASE_URL
EMBEDDED_BROKER = not REDIS_URL
DATABASE_URL = DATABASE_URL or GROUNDWORK_DATA.database_url()
REDIS_URL = REDIS_URL or GROUNDWORK_DATA.broker_url()


DATABASE_POOL = env_bool(
    "DATABASE_POOL",
    default=False,
    help="Keep database connections between requests; the web server turns it on by itself.",
)


def _database(url: str) -> dict[str, Any]:
    parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.pop("dbname", ""),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
        "OPTIONS": {**parts, **({"pool": _POOL} if DATABASE_POOL else {})},
        "CONN_MAX_AGE": 0 if DATABASE_POOL else 60,
        "CONN_HEALTH_CHECKS": True,
    }


DATABASES = {"default": _database(DATABASE_URL)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {"hosts": [{"address": REDIS_URL}]},
    }
}

# --- Celery ------------------------------------------------------------------------------------
# Celery spells a socket address redis+socket://, every other client unix://.
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 5.0
CELERY_WORKER_HIJACK_ROOT_LOGGER = False  # LOGGING below holds for workers too
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 6 * 3600}
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_TIMEZONE = "UTC"
# Syncs wait for their sources most of the time; apart, they keep nobody from indexing.
CELERY_TASK_ROUTES = {
    "connectors.sync": {"queue": "sync"},
    "accounts.deliver_webhook": {"queue": "sync"},
}
CELERY_BEAT_SCHEDULE = {
    "resume-stalled-documents": {"task": "knowledge.resume_stalled_documents", "schedule": 120.0},
    "resume-stalled-reembeddings": {
        "task": "knowledge.resume_stalled_reembeddings",
        "schedule": 60.0,
    },
    "remove-orphaned-originals": {"task": "knowledge.remove_orphans", "schedule": 86400.0},
    "discard-old-vectors": {"task": "knowledge.discard_old_vectors", "schedule": 86400.0},
    "maintain-base-indexes": {"task": "knowledge.maintain_indexes", "schedule": 120.0},
    "resume-abandoned-syncs": {"task": "connectors.resume_abandoned", "schedule": 30.0},
    "deliver-due-webhooks": {"task": "accounts.deliver_due_webhooks", "schedule": 10.0},
    "forget-old-webhook-deliveries": {
        "task": "accounts.forget_old_webhook_deliveries",
        "schedule": 86400.0,
    },
    "compact-term-statistics": {"task": "knowledge.compact_statistics", "schedule": 300.0},
    "check-golden-queries": {"task": "search.check_golden_queries", "schedule": 300.0},
    "run-golden-queries-nightly": {
        "task": "search.run_all_golden_queries",
        "schedule": crontab(hour=2, minute=20),
    },
}
GROUNDWORK_WORKERS = env_int(
    "GROUNDWORK_WORKERS", 2, help="Worker processes that ingest documents.", minimum=1
)

# --- applications ------------------------------------------------------------------------------
INSTALLED_APPS = [
    "daphne",
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_celery_beat",
    "csp",
    "channels",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "accounts",
    "providers",
    "knowledge",
    "connectors",
    "search",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "accounts.middleware.TenantMiddleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "accounts.context.tenant_context",
            ]
        },
    }
]

# --- people ------------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/admin/"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "optional" if DEVELOPMENT else "mandatory"
ACCOUNT_ADAPTER = "accounts.adapter.AccountAdapter"
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "http" if DEVELOPMENT else "https"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
SIGNUP_OPEN = env_bool(
    "GROUNDWORK_SIGNUP_OPEN",
    default=DEVELOPMENT,
    help="Whether anyone may sign up and found a tenant. Off: by invitation only.",
)
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
for _provider in env_list(
    "SOCIAL_LOGIN",
    help="allauth providers to offer, e.g. `google,github`; each reads SOCIAL_<NAME>_CLIENT_ID and _SECRET.",
):
    INSTALLED_APPS.append(f"allauth.socialaccount.providers.{_provider}")
    _client_id = env_str(f"SOCIAL_{_provider.upper()}_CLIENT_ID", help=f"Client id of {_provider}.")
    _secret = env_str(f"SOCIAL_{_provider.upper()}_SECRET", help=f"Client secret of {_provider}.")
    SOCIALACCOUNT_PROVIDERS[_provider] = {"APPS": [{"client_id": _client_id, "secret": _secret}]}

EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
EMAIL_HOST = env_str("EMAIL_HOST", help="SMTP server. Empty: mail is printed to the log.")
if not EMAIL_HOST:
    EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
EMAIL_PORT = env_int("EMAIL_PORT", 587, help="SMTP port.", minimum=1)
EMAIL_HOST_USER = env_str("EMAIL_HOST_USER", help="SMTP user.")
EMAIL_HOST_PASSWORD = env_str("EMAIL_HOST_PASSWORD", help="SMTP password.")
EMAIL_USE_TLS = env_bool("EMAIL_USE_TLS", default=True, help="STARTTLS towards the SMTP server.")
DEFAULT_FROM_EMAIL = env_str(
    "DEFAULT_FROM_EMAIL", "groundwork@localhost", help="Sender of invitations and confirmations."
)

# --- transport security ------------------------------------------------------------------------
SECURE_COOKIES = env_bool(
    "SECURE_COOKIES", default=not DEVELOPMENT, help="Send cookies over HTTPS only; redirect HTTP."
)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = SECURE_COOKIES
SESSION_COOKIE_HTTPONLY = True
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SECURE_COOKIES else None
SECURE_HSTS_SECONDS = 31_536_000 if SECURE_COOKIES else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SECURE_COOKIES
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        # The admin theme's Alpine.js evaluates expressions and sets inline styles.
        "script-src": ["'self'", "'unsafe-eval'", "'unsafe-inline'"],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

# --- language, files ---------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = DEVELOPMENT
S3_BUCKET = env_str(
    "S3_BUCKET", help="Bucket for originals. Empty: the folder `originals` in GROUNDWORK_DATA."
)
S3_ENDPOINT_URL = env_str("S3_ENDPOINT_URL", help="Endpoint of an S3-compatible store.")
S3_ACCESS_KEY = env_str("S3_ACCESS_KEY", help="Access key of the bucket.")
S3_SECRET_KEY = env_str("S3_SECRET_KEY", help="Secret key of the bucket.")
_originals: dict[str, Any] = {
    "BACKEND": "django.core.files.storage.FileSystemStorage",
    "OPTIONS": {"location": str(GROUNDWORK_DATA.originals), "file_permissions_mode": 0o600},
}
if S3_BUCKET:
    _originals = {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": S3_BUCKET,
            "endpoint_url": S3_ENDPOINT_URL or None,
            "access_key": S3_ACCESS_KEY or None,
            "secret_key": S3_SECRET_KEY or None,
            "default_acl": None,
            "file_overwrite": True,
        },
    }
STORAGES = {
    "default": _originals,
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEVELOPMENT
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
MAX_UPLOAD_BYTES = (
    env_int("MAX_UPLOAD_MB", 200, help="Largest file accepted, in megabytes.", minimum=1)
    * 1024
    * 1024
)
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = 32 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FILES = 1000

# --- models ------------------------------------------------------------------------------------
GROUNDWORK_MODEL_CACHE = GROUNDWORK_DATA.models
GROUNDWORK_EMBED_THREADS = env_int(
    "GROUNDWORK_EMBED_THREADS",
    1,
    help="Threads of the local embedder in each worker process.",
    minimum=1,
)
GROUNDWORK_EMBED_BASE_URL = env_str(
    "GROUNDWORK_EMBED_BASE_URL",
    help="Base URL of an OpenAI-compatible embedding endpoint, e.g. https://host/v1.",
)
GROUNDWORK_EMBED_API_KEY = env_str("GROUNDWORK_EMBED_API_KEY", help="Key of that endpoint.")
GROUNDWORK_EMBED_MODEL = env_str(
    "GROUNDWORK_EMBED_MODEL", help="Model name there; then the default for new knowledge bases."
)
GROUNDWORK_EMBED_DIMENSIONS = env_int(
    "GROUNDWORK_EMBED_DIMENSIONS", 1536, help="Length of its vectors (at most 4000).", minimum=1
)
GROUNDWORK_EMBED_MAX_TOKENS = env_int(
    "GROUNDWORK_EMBED_MAX_TOKENS", 512, help="Longest text it takes, in tokens.", minimum=32
)

# --- sources -----------------------------------------------------------------------------------
GROUNDWORK_ENCRYPTION_KEYS = env_list(
    "GROUNDWORK_ENCRYPTION_KEYS",
    help="Long random texts; the first encrypts stored credentials, all decrypt them. Empty: made from SECRET_KEY.",
)
GROUNDWORK_PRIVATE_HOSTS = env_list(
    "GROUNDWORK_PRIVATE_HOSTS",
    help="Hosts (`name` or `name:port`) in private networks that connectors and webhooks may reach.",
)
GROUNDWORK_LOCAL_FOLDERS = env_list(
    "GROUNDWORK_LOCAL_FOLDERS",
    help="Folders of this machine that tenants may connect as sources. Empty: none.",
)
GROUNDWORK_MCP_COMMANDS = env_list(
    "GROUNDWORK_MCP_COMMANDS",
    help="Command lines, each whole, that tenants may run here as MCP servers, without a shell. Empty: none.",
)
GROUNDWORK_OAUTH_CLIENTS: dict[str, tuple[str, str]] = {}
for _kind in env_list(
    "OAUTH_CLIENTS",
    help="Connectors for which this installation has an OAuth client, e.g. `slack,google`; each reads OAUTH_<NAME>_CLIENT_ID and _SECRET.",
):
    _variable = _kind.upper().replace("-", "_")
    GROUNDWORK_OAUTH_CLIENTS[_kind] = (
        env_str(f"OAUTH_{_variable}_CLIENT_ID", help=f"OAuth client id for {_kind}."),
        env_str(f"OAUTH_{_variable}_SECRET", help=f"OAuth client secret for {_kind}."),
    )
GROUNDWORK_SYNCS = env_int(
    "GROUNDWORK_SYNCS",
    4,
    help="Syncs that run at the same time in this installation's sync worker.",
    minimum=1,
)

# --- API ---------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.api.authentication.ApiKeyAuthentication",
        "accounts.api.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.api.permissions.ActionPermission"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "rest_framework.parsers.JSONParser",
        "rest_framework.parsers.MultiPartParser",
    ],
    "DEFAULT_PAGINATION_CLASS": "accounts.api.pagination.CreatedCursorPagination",
    "PAGE_SIZE": 50,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "accounts.api.problems.problem_response",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Groundwork API",
    "DESCRIPTION": "Grounded, cited, permission-checked evidence for agents.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SWAGGER_UI_DIST": "SIDECAR",  # from our own origin, as the Content-Security-Policy wants
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "DocumentStatus": "knowledge.models.document.Document.Status",
        "WebhookEvent": "accounts.models.webhook.WebhookEvent",
        "ChoosableEvent": "accounts.services.webhooks.CHOOSABLE",
    },
}

UNFOLD = {
    "SITE_TITLE": "Groundwork",
    "SITE_HEADER": "Groundwork",
    "SITE_SUBHEADER": "Knowledge for agents",
    "SITE_SYMBOL": "foundation",
    "SHOW_VIEW_ON_SITE": False,
    "ENVIRONMENT": "accounts.context.tenant_badge",
    "DASHBOARD_CALLBACK": "search.admin.dashboard_context",
    "STYLES": [lambda request: static("css/groundwork.css")],
    "SIDEBAR": {
        "show_search": False,
        "navigation": [
            {
                "title": "Knowledge",
                "items": [
                    {
                        "title": "Knowledge bases",
                        "icon": "library_books",
                        "link": reverse_lazy("admin:knowledge_knowledgebase_changelist"),
                    },
                    {
                        "title": "Documents",
                        "icon": "description",
                        "link": reverse_lazy("admin:knowledge_document_changelist"),
                        # The upload page lies below the documents' address and has its own entry.
                        "active": lambda request: (
                            "/document/" in request.path and not request.path.endswith("/upload/")
                        ),
                    },
                    {
                        "title": "Upload",
                        "icon": "upload_file",
                        "link": reverse_lazy("admin:knowledge_document_upload"),
                    },
                    {
                        "title": "Chunks",
                        "icon": "segment",
                        "link": reverse_lazy("admin:knowledge_chunk_changelist"),
                    },
                ],
            },
            {
                "title": "Sources",
                "items": [
                    {
                        "title": "Connections",
                        "icon": "hub",
                        "link": reverse_lazy("admin:connectors_connection_changelist"),
                        # The gallery lies below the connections' address and has its own entry.
                        "active": lambda request: (
                            "/connectors/connection/" in request.path
                            and not request.path.endswith("/gallery/")
                        ),
                        "permission": "connectors.admin.may_keep_sources",
                    },
                    {
                        "title": "Connector gallery",
                        "icon": "apps",
                        "link": reverse_lazy("admin:connectors_gallery"),
                        "permission": "connectors.admin.may_keep_sources",
                    },
                    {
                        "title": "Sync runs",
                        "icon": "sync",
                        "link": reverse_lazy("admin:connectors_syncrun_changelist"),
                        "permission": "connectors.admin.may_keep_sources",
                    },
                ],
            },
            {
                "title": "Search",
                "items": [
                    {
                        "title": "Search test",
                        "icon": "search",
                        "link": reverse_lazy("admin:search_test"),
                    },
                    {
                        "title": "Golden queries",
                        "icon": "verified",
                        "link": reverse_lazy("admin:search_goldenquery_changelist"),
                        "active": lambda request: "/search/golden" in request.path,
                    },
                    {
                        "title": "Synonyms",
                        "icon": "sync_alt",
                        "link": reverse_lazy("admin:search_synonymset_changelist"),
                    },
                    {
                        "title": "Search history",
                        "icon": "history",
                        "link": reverse_lazy("admin:search_searchquery_changelist"),
                        "active": lambda request: (
                            "/searchquery/" in request.path
                            and request.path != str(reverse_lazy("admin:search_test"))
                        ),
                    },
                ],
            },
            {
                "title": "Administration",
                "items": [
                    {
                        "title": "API keys",
                        "icon": "key",
                        "link": reverse_lazy("admin:accounts_apikey_changelist"),
                    },
                    {
                        "title": "Webhooks",
                        "icon": "webhook",
                        "link": reverse_lazy("admin:accounts_webhookendpoint_changelist"),
                        "active": lambda request: "/accounts/webhook" in request.path,
                    },
                    {
                        "title": "Members",
                        "icon": "group",
                        "link": reverse_lazy("admin:accounts_membership_changelist"),
                    },
                    {
                        "title": "Invitations",
                        "icon": "mail",
                        "link": reverse_lazy("admin:accounts_invitation_changelist"),
                    },
                    {
                        "title": "Audit events",
                        "icon": "fact_check",
                        "link": reverse_lazy("admin:accounts_auditevent_changelist"),
                    },
                ],
            },
        ],
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {
        "handlers": ["stderr"],
        "level": env_str("LOG_LEVEL", "INFO", help="Least level that is logged."),
    },
    "loggers": {
        "celery.worker.strategy": {"level": "WARNING"},  # each task is logged once, at its end
        "django.server": {"level": "WARNING"},
        "django.channels.server": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
    },
}
