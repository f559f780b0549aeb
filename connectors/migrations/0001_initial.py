import accounts.tenancy
import django.contrib.postgres.fields
import django.db.models.deletion
import knowledge.models.document
from accounts.tenancy import tenant_table
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
        ('knowledge', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Connection',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('connector', models.CharField(editable=False, max_length=50)),
                ('name', models.CharField(max_length=200)),
                ('config', models.JSONField(blank=True, default=dict)),
                ('auth_method', models.CharField(default='none', max_length=30)),
                ('sealed_credentials', models.TextField(blank=True, editable=False)),
                ('access', models.CharField(choices=[('source', 'As the source says'), ('fixed', 'Those named below')], default='source', help_text='Who may read what comes from this source.', max_length=10)),
                ('principals', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=300), default=knowledge.models.document.public_only, help_text='Who may read it where the source does not know, or is not asked: public, user:mail@example.com, group:name.', size=None)),
                ('status', models.CharField(choices=[('active', 'Active'), ('paused', 'Paused'), ('needs_authorisation', 'Needs authorisation')], default='active', max_length=20)),
                ('status_reason', models.TextField(blank=True, editable=False)),
                ('credential_failures', models.PositiveSmallIntegerField(default=0, editable=False)),
                ('cursor', models.JSONField(blank=True, default=dict, editable=False)),
                ('change_noticed', models.BooleanField(default=False, editable=False, help_text='The source has told of a change that an unfinished run may have missed.')),
                ('schedule', models.JSONField(blank=True, default=dict, help_text='When to look for changes: {"every_minutes": 60} or {"cron": "0 6 * * *", "time_zone": "Europe/Berlin"}.')),
                ('full_schedule', models.JSONField(blank=True, default=dict, help_text='When to compare everything, written the same way. Empty: when started by hand.')),
                ('deletion_guard_percent', models.PositiveSmallIntegerField(default=30, help_text='A run that would delete more than this share of the documents stops and asks.')),
                ('keeps_capture', models.BooleanField(default=False, help_text='Keep what the source sent, so that it can be indexed again without asking the source.')),
                ('created_by', models.CharField(blank=True, editable=False, max_length=300)),
                ('last_synced_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('knowledge_base', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='connections', to='knowledge.knowledgebase')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='GroupMembership',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('group', models.CharField(max_length=300)),
                ('member', models.CharField(max_length=300)),
                ('connection', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='memberships', to='connectors.connection')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='SyncItem',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('external_id', models.CharField(max_length=500)),
                ('title', models.CharField(blank=True, max_length=500)),
                ('scope', models.CharField(blank=True, max_length=500)),
                ('document_id', models.UUIDField(blank=True, null=True)),
                ('version', models.CharField(blank=True, max_length=500)),
                ('facts_hash', models.CharField(blank=True, max_length=64)),
                ('status', models.CharField(choices=[('stored', 'Stored'), ('failed', 'Failed'), ('skipped', 'Holds no text'), ('gone', "Gone at the source; waits for a person's word")], default='stored', max_length=8)),
                ('stage', models.CharField(blank=True, choices=[('list', 'Reading it from the source'), ('fetch', 'Downloading it'), ('store', 'Storing it')], max_length=6)),
                ('error', models.TextField(blank=True)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('next_retry_at', models.DateTimeField(blank=True, null=True)),
                ('in_complete_scope', models.BooleanField(default=False, help_text='Whether its scope has been listed completely before.')),
                ('seen_run', models.UUIDField(null=True)),
                ('seen_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('connection', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='items', to='connectors.connection')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='SyncRun',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('incremental', 'Changes'), ('full', 'Everything'), ('retry', 'Failed items'), ('replay', 'From the capture'), ('push', 'Pushed records')], max_length=12)),
                ('trigger', models.CharField(help_text='schedule, webhook, or who started it.', max_length=300)),
                ('status', models.CharField(choices=[('queued', 'Waiting for a worker'), ('running', 'Running'), ('succeeded', 'Succeeded'), ('partial', 'Partly succeeded'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('skipped', 'Skipped')], default='queued', max_length=10)),
                ('inserted', models.IntegerField(default=0)),
                ('updated', models.IntegerField(default=0)),
                ('kept', models.IntegerField(default=0)),
                ('deleted', models.IntegerField(default=0)),
                ('failed', models.IntegerField(default=0)),
                ('held_deletions', models.IntegerField(default=0, help_text="Documents that are gone at the source and wait for a person's word.")),
                ('warnings', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, size=None)),
                ('error', models.TextField(blank=True)),
                ('error_code', models.CharField(blank=True, max_length=50)),
                ('cursor', models.JSONField(blank=True, default=dict)),
                ('from_start', models.BooleanField(default=False, editable=False, help_text='Whether it began with nothing known of the source.')),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('lease', models.UUIDField(null=True)),
                ('cancel_requested', models.BooleanField(default=False)),
                ('not_before', models.DateTimeField(blank=True, null=True)),
                ('heartbeat_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('connection', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='runs', to='connectors.connection')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.AddIndex(
            model_name='connection',
            index=models.Index(fields=['tenant', '-created_at', '-id'], name='connection_newest_first'),
        ),
        migrations.AddConstraint(
            model_name='connection',
            constraint=models.UniqueConstraint(fields=('tenant', 'knowledge_base', 'name'), name='one_connection_per_name'),
        ),
        migrations.AddIndex(
            model_name='groupmembership',
            index=models.Index(fields=['tenant', 'member'], name='groups_of_a_member'),
        ),
        migrations.AddConstraint(
            model_name='groupmembership',
            constraint=models.UniqueConstraint(fields=('tenant', 'connection', 'group', 'member'), name='one_membership_per_group'),
        ),
        migrations.AddIndex(
            model_name='syncitem',
            index=models.Index(condition=models.Q(('status', 'stored'), _negated=True), fields=['tenant', 'connection', 'status', 'next_retry_at'], name='sync_item_unfinished'),
        ),
        migrations.AddConstraint(
            model_name='syncitem',
            constraint=models.UniqueConstraint(fields=('tenant', 'connection', 'external_id'), name='one_item_per_external_id'),
        ),
        migrations.AddIndex(
            model_name='syncrun',
            index=models.Index(fields=['tenant', 'connection', '-created_at', '-id'], name='sync_run_newest_first'),
        ),
        migrations.AddIndex(
            model_name='syncrun',
            index=models.Index(condition=models.Q(('status__in', ['queued', 'running'])), fields=['heartbeat_at'], name='sync_run_unfinished'),
        ),
        migrations.AddConstraint(
            model_name='syncrun',
            constraint=models.UniqueConstraint(condition=models.Q(('status__in', ['queued', 'running'])), fields=('tenant', 'connection'), name='one_sync_at_a_time'),
        ),
        tenant_table("connectors_connection", {"knowledge_base_id": "knowledge_knowledgebase"}),
        tenant_table("connectors_syncrun", {"connection_id": "connectors_connection"}),
        tenant_table("connectors_syncitem", {"connection_id": "connectors_connection"}),
        tenant_table("connectors_groupmembership", {"connection_id": "connectors_connection"}),
    ]
