import accounts.tenancy
import django.contrib.postgres.fields
import django.db.models.deletion
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
            name='SearchQuery',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('actor', models.CharField(max_length=300)),
                ('query', models.TextField()),
                ('mode', models.CharField(max_length=10)),
                ('strategy', models.CharField(max_length=10)),
                ('request', models.JSONField(default=dict)),
                ('knowledge_base_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None)),
                ('chunk_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None)),
                ('result_count', models.IntegerField(default=0)),
                ('timings_ms', models.JSONField(default=dict)),
                ('total_ms', models.FloatField(default=0.0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'verbose_name': 'search',
                'verbose_name_plural': 'search history',
                'ordering': ['-created_at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='SearchFeedback',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('rating', models.CharField(choices=[('up', 'Up'), ('down', 'Down')], max_length=4)),
                ('chunk_id', models.UUIDField(blank=True, null=True)),
                ('comment', models.TextField(blank=True)),
                ('actor', models.CharField(max_length=300)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
                ('search', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='feedback', to='search.searchquery')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.AddIndex(
            model_name='searchquery',
            index=models.Index(fields=['tenant', '-created_at', '-id'], name='search_newest_first'),
        ),
        tenant_table("search_searchquery"),
        tenant_table("search_searchfeedback", {"search_id": "search_searchquery"}),
        migrations.CreateModel(
            name='GoldenQuery',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('query', models.TextField(help_text='The question, as people ask it.')),
                ('strategy', models.CharField(default='hybrid', max_length=10)),
                ('filter', models.JSONField(blank=True, help_text='As in the API; empty: none.', null=True)),
                ('within', models.PositiveSmallIntegerField(default=5, help_text='The passage has to be among the first so many results.')),
                ('document_id', models.UUIDField(editable=False)),
                ('document_title', models.CharField(editable=False, max_length=500)),
                ('quote', models.TextField(help_text='Text of the wanted passage. A shorter quote makes a sharper check: a result counts when it holds the quote, or half of it where the passage has been cut in two.')),
                ('heading', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, editable=False, size=None)),
                ('ordinal', models.IntegerField(default=0, editable=False)),
                ('enabled', models.BooleanField(default=True, help_text='Switched off: runs leave it out.')),
                ('note', models.TextField(blank=True, help_text='Why this matters; for people.')),
                ('status', models.CharField(choices=[('unknown', 'Not checked'), ('green', 'Green'), ('red', 'Red')], default='unknown', editable=False, max_length=10)),
                ('rank', models.PositiveSmallIntegerField(editable=False, null=True)),
                ('previous_rank', models.PositiveSmallIntegerField(editable=False, null=True)),
                ('reason', models.TextField(blank=True, editable=False)),
                ('checked_at', models.DateTimeField(editable=False, null=True)),
                ('created_by', models.CharField(editable=False, max_length=300)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('knowledge_base', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='golden_queries', to='knowledge.knowledgebase')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'verbose_name_plural': 'golden queries',
                'ordering': ['-created_at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='GoldenRun',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('trigger', models.CharField(choices=[('on_demand', 'On demand'), ('re_index', 'Documents changed'), ('model_change', 'Embedding model changed'), ('schedule', 'Schedule')], max_length=12)),
                ('started_by', models.CharField(max_length=300)),
                ('started_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('green', models.IntegerField(default=0)),
                ('red', models.IntegerField(default=0)),
                ('unknown', models.IntegerField(default=0)),
                ('embedding_model', models.CharField(max_length=200)),
                ('embedding_field', models.CharField(max_length=20)),
                ('newest_indexed_at', models.DateTimeField(null=True)),
                ('newest_edited_at', models.DateTimeField(null=True)),
                ('document_count', models.IntegerField(default=0)),
                ('knowledge_base', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='golden_runs', to='knowledge.knowledgebase')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'ordering': ['-started_at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='GoldenResult',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('status', models.CharField(choices=[('unknown', 'Not checked'), ('green', 'Green'), ('red', 'Red')], max_length=10)),
                ('rank', models.PositiveSmallIntegerField(null=True)),
                ('previous_status', models.CharField(choices=[('unknown', 'Not checked'), ('green', 'Green'), ('red', 'Red')], max_length=10)),
                ('previous_rank', models.PositiveSmallIntegerField(null=True)),
                ('reason', models.TextField(blank=True)),
                ('change', models.CharField(blank=True, choices=[('turned_red', 'Turned red'), ('turned_green', 'Turned green'), ('moved', 'Moved'), ('', 'Unchanged')], default='', max_length=12)),
                ('first_chunk_id', models.UUIDField(null=True)),
                ('first_title', models.CharField(blank=True, max_length=500)),
                ('first_snippet', models.TextField(blank=True)),
                ('golden_query', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='results', to='search.goldenquery')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
                ('run', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='results', to='search.goldenrun')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.AddIndex(
            model_name='goldenquery',
            index=models.Index(fields=['tenant', '-created_at', '-id'], name='golden_newest_first'),
        ),
        migrations.AddIndex(
            model_name='goldenrun',
            index=models.Index(fields=['tenant', 'knowledge_base', '-started_at', '-id'], name='golden_run_newest_first'),
        ),
        tenant_table("search_goldenquery", {"knowledge_base_id": "knowledge_knowledgebase"}),
        tenant_table("search_goldenrun", {"knowledge_base_id": "knowledge_knowledgebase"}),
        tenant_table(
            "search_goldenresult",
            {"run_id": "search_goldenrun", "golden_query_id": "search_goldenquery"},
        ),
        migrations.CreateModel(
            name='SynonymSet',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('terms', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), size=None)),
                ('one_way', models.BooleanField(default=False, help_text='The first term also finds the others, but they do not find the first: “vehicle” finds “car” and “truck”, and “car” only itself.')),
                ('enabled', models.BooleanField(default=True, help_text='Switched off: searches leave it out.')),
                ('note', models.TextField(blank=True, help_text='Why it is here; for people.')),
                ('keys', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), default=list, editable=False, size=None)),
                ('created_by', models.CharField(editable=False, max_length=300)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('knowledge_base', accounts.tenancy.TenantForeignKey(blank=True, db_constraint=False, db_index=False, help_text='Holds for passages of this knowledge base only. Empty: for those of all.', null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='synonym_sets', to='knowledge.knowledgebase')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'ordering': ['-created_at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.AddIndex(
            model_name='synonymset',
            index=models.Index(fields=['tenant', '-created_at', '-id'], name='synonyms_newest_first'),
        ),
        tenant_table("search_synonymset", {"knowledge_base_id": "knowledge_knowledgebase"}),
    ]
