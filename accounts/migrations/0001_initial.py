"""Tenants, people, keys, audit; the role that tenant scopes run as."""

import accounts.models.membership
import accounts.models.user
import accounts.tenancy
import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from accounts.tenancy import ROLE, tenant_table

EXTENSIONS = ("vector", "pg_trgm", "unaccent", "btree_gin")

# Roles belong to the whole server: migrations of several databases may meet here.
CREATE_ROLE = f"""
DO $$
BEGIN
    FOR attempt IN 1..20 LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN
                CREATE ROLE {ROLE} NOLOGIN NOINHERIT;
            END IF;
            GRANT {ROLE} TO CURRENT_USER;
            RETURN;
        EXCEPTION WHEN insufficient_privilege THEN
            -- Whoever may not create or grant roles can use one that an administrator has prepared.
            IF EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}')
                AND pg_has_role(CURRENT_USER, '{ROLE}', 'MEMBER') THEN
                RETURN;
            END IF;
            RAISE;
        WHEN duplicate_object OR unique_violation OR internal_error THEN
            PERFORM pg_sleep(0.05);
        END;
    END LOOP;
    RAISE EXCEPTION 'The role {ROLE} could not be created or granted to %', CURRENT_USER;
END
$$
"""
# Other applications' tables get theirs by default, whether they are created before or after these.
GRANT = (
    f"GRANT USAGE ON SCHEMA public TO {ROLE}",
    f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {ROLE}",
    f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {ROLE}",
    f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {ROLE}",
    f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {ROLE}",
)
# The role itself stays: other databases of this server may use it.
REVOKE = (
    f"ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON SEQUENCES FROM {ROLE}",
    f"ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON TABLES FROM {ROLE}",
    f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {ROLE}",
    f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {ROLE}",
    f"REVOKE USAGE ON SCHEMA public FROM {ROLE}",
)


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.RunSQL(
            [f"CREATE EXTENSION IF NOT EXISTS {name}" for name in EXTENSIONS], migrations.RunSQL.noop
        ),
        migrations.RunSQL(CREATE_ROLE, migrations.RunSQL.noop),
        migrations.CreateModel(
            name='Tenant',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=200)),
                ('slug', models.SlugField(allow_unicode=True, max_length=100, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('email', models.EmailField(max_length=254, unique=True, verbose_name='mail address')),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'verbose_name': 'user',
                'verbose_name_plural': 'users',
                'abstract': False,
            },
            managers=[
                ('objects', accounts.models.user.EmailUserManager()),
            ],
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(help_text='What uses this key.', max_length=200)),
                ('prefix', models.CharField(db_index=True, editable=False, max_length=16)),
                ('secret_hash', models.CharField(editable=False, max_length=64)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('search', 'Search'), ('read', 'Read'), ('write', 'Write'), ('admin', 'Admin'), ('principals', 'Principals')], max_length=12), size=None)),
                ('knowledge_base_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), blank=True, help_text='Limits the key to these knowledge bases. Empty: all of the tenant.', null=True, size=None)),
                ('agent_id', models.UUIDField(blank=True, help_text='The agent this key belongs to.', null=True)),
                ('created_by', models.EmailField(default='', editable=False, max_length=254)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, help_text='Empty: never.', null=True)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'verbose_name': 'API key',
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('admin', 'Admin'), ('editor', 'Editor'), ('viewer', 'Viewer')], default='viewer', max_length=10)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(fields=('tenant', 'user'), name='one_membership_per_person')],
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('email', models.EmailField(help_text='The invitation link is sent here.', max_length=254, verbose_name='mail address')),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('admin', 'Admin'), ('editor', 'Editor'), ('viewer', 'Viewer')], default='viewer', max_length=10)),
                ('token_hash', models.CharField(db_index=True, editable=False, max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(default=accounts.models.membership.invitation_expiry)),
                ('accepted_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(condition=models.Q(('accepted_at', None)), fields=('tenant', 'email'), name='one_open_invitation_per_address')],
            },
        ),
        migrations.CreateModel(
            name='IdempotencyRecord',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('actor', models.CharField(max_length=60)),
                ('key', models.CharField(max_length=255)),
                ('fingerprint', models.CharField(max_length=64)),
                ('claimed_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('completed_at', models.DateTimeField(blank=True, null=True)),
                ('status', models.PositiveSmallIntegerField(default=0)),
                ('body', models.TextField(blank=True, null=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
                'indexes': [models.Index(fields=['tenant', 'claimed_at'], name='idempotency_oldest')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'actor', 'key'), name='one_answer_per_key')],
            },
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('actor', models.CharField(max_length=300)),
                ('action', models.CharField(max_length=100)),
                ('target', models.CharField(blank=True, max_length=300)),
                ('target_id', models.UUIDField(blank=True, null=True)),
                ('denied', models.BooleanField(default=False)),
                ('detail', models.JSONField(blank=True, default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'ordering': ['-created_at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
                'indexes': [models.Index(fields=['tenant', '-created_at'], name='audit_newest_first')],
            },
        ),
        migrations.CreateModel(
            name='WebhookEndpoint',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('url', models.CharField(help_text='Where events are posted to; https.', max_length=2000)),
                ('description', models.CharField(blank=True, help_text='What listens there.', max_length=200)),
                ('event_types', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('sync.succeeded', 'A sync succeeded'), ('sync.partial', 'A sync succeeded partly'), ('sync.failed', 'A sync failed'), ('document.ready', 'A document can be found'), ('document.failed', 'A document could not be indexed'), ('ping', 'A test')], max_length=40), size=None)),
                ('enabled', models.BooleanField(default=True)),
                ('sealed_secret', models.TextField(editable=False)),
                ('failing_since', models.DateTimeField(blank=True, editable=False, null=True)),
                ('probed_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('disabled_reason', models.TextField(blank=True, editable=False)),
                ('created_by', models.CharField(blank=True, editable=False, max_length=300)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'verbose_name': 'webhook',
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
                'indexes': [models.Index(fields=['tenant', '-created_at', '-id'], name='webhook_newest_first')],
            },
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('event_id', models.UUIDField(default=accounts.tenancy.new_id)),
                ('event_type', models.CharField(choices=[('sync.succeeded', 'A sync succeeded'), ('sync.partial', 'A sync succeeded partly'), ('sync.failed', 'A sync failed'), ('document.ready', 'A document can be found'), ('document.failed', 'A document could not be indexed'), ('ping', 'A test')], max_length=40)),
                ('payload', models.JSONField()),
                ('status', models.CharField(choices=[('pending', 'On its way'), ('succeeded', 'Delivered'), ('failed', 'Given up')], default='pending', max_length=10)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('status_code', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('error', models.TextField(blank=True)),
                ('next_attempt_at', models.DateTimeField(blank=True, default=django.utils.timezone.now, null=True)),
                ('attempted_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
                ('endpoint', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='deliveries', to='accounts.webhookendpoint')),
            ],
            options={
                'verbose_name': 'webhook delivery',
                'verbose_name_plural': 'webhook deliveries',
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
                'indexes': [models.Index(fields=['tenant', 'endpoint', '-created_at', '-id'], name='delivery_newest_first'), models.Index(condition=models.Q(('status', 'pending')), fields=['next_attempt_at'], name='delivery_due'), models.Index(fields=['created_at'], name='delivery_oldest')],
            },
        ),
        migrations.RunSQL(GRANT, REVOKE),
        tenant_table("accounts_membership"),
        tenant_table("accounts_invitation"),
        tenant_table("accounts_apikey"),
        tenant_table("accounts_auditevent"),
        tenant_table("accounts_idempotencyrecord"),
        tenant_table("accounts_webhookendpoint"),
        tenant_table("accounts_webhookdelivery", {"endpoint_id": "accounts_webhookendpoint"}),
    ]
