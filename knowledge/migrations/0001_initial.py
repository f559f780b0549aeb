import accounts.tenancy
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.utils.timezone
import knowledge.models.document
import pgvector.django.halfvec
import pgvector.django.sparsevec
from accounts.tenancy import tenant_table
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Chunk',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('ordinal', models.IntegerField()),
                ('content', models.TextField()),
                ('heading_path', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, size=None)),
                ('page', models.IntegerField(blank=True, null=True)),
                ('sheet', models.CharField(blank=True, max_length=300, null=True)),
                ('row', models.IntegerField(blank=True, null=True)),
                ('line', models.IntegerField(blank=True, null=True)),
                ('start', models.IntegerField()),
                ('end', models.IntegerField()),
                ('token_count', models.IntegerField(default=0)),
                ('language', models.CharField(blank=True, max_length=8)),
                ('lexemes', django.contrib.postgres.search.SearchVectorField(null=True)),
                ('lexical_weights', pgvector.django.sparsevec.SparseVectorField(dimensions=1000000000, null=True)),
                ('lexical_length', models.IntegerField(default=0)),
                ('embedding', pgvector.django.halfvec.HalfVectorField(null=True)),
                ('embedding_alternate', pgvector.django.halfvec.HalfVectorField(null=True)),
                ('fingerprint', models.BigIntegerField(default=0)),
                ('principals', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=300), default=knowledge.models.document.public_only, size=None)),
                ('live', models.BooleanField(default=True)),
                ('enabled', models.BooleanField(default=True, help_text='Switched off: search does not see it.')),
                ('edited_at', models.DateTimeField(blank=True, null=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'ordering': ['document', 'ordinal'],
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='Cluster',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=300)),
                ('content', models.TextField()),
                ('query_history', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, size=None)),
                ('query_embedding', pgvector.django.halfvec.HalfVectorField(blank=True, null=True)),
                ('confidence', models.FloatField(default=0.0)),
                ('hotness', models.FloatField(default=0.0)),
                ('lifecycle', models.CharField(choices=[('emerging', 'Emerging'), ('stable', 'Stable'), ('stale', 'Stale')], default='emerging', max_length=10)),
                ('related_cluster_ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), blank=True, default=list, size=None)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='Document',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('title', models.CharField(blank=True, max_length=500)),
                ('filename', models.CharField(blank=True, max_length=500)),
                ('content_type', models.CharField(blank=True, max_length=200)),
                ('language', models.CharField(blank=True, max_length=8)),
                ('source', models.CharField(default='upload', max_length=50)),
                ('source_uri', models.CharField(blank=True, max_length=2000)),
                ('source_id', models.UUIDField(editable=False, help_text='The connection it came from; external ids are unique in it.', null=True)),
                ('external_id', models.CharField(blank=True, max_length=500)),
                ('author', models.CharField(blank=True, max_length=300)),
                ('breadcrumbs', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=300), blank=True, default=list, size=None)),
                ('metadata', models.JSONField(blank=True, default=dict)),
                ('principals', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=300), default=knowledge.models.document.public_only, help_text='Who may find it: public, user:mail@example.com, group:name.', size=None)),
                ('boost', models.FloatField(default=1.0, help_text='Factor for the scores of its passages; 1 changes nothing.')),
                ('original', models.FileField(editable=False, max_length=500, upload_to='')),
                ('size', models.BigIntegerField(default=0, editable=False)),
                ('content_hash', models.CharField(editable=False, max_length=64)),
                ('extracted_text', models.TextField(blank=True, editable=False)),
                ('status', models.CharField(choices=[('pending', 'Waiting'), ('processing', 'Processing'), ('ready', 'Ready'), ('failed', 'Failed')], default='pending', max_length=10)),
                ('stage', models.CharField(blank=True, choices=[('', 'Waiting for a worker'), ('extracting', 'Reading the file'), ('embedding', 'Computing vectors; already found by its words'), ('done', 'Done')], default='', max_length=12)),
                ('error_code', models.CharField(blank=True, max_length=50)),
                ('error', models.TextField(blank=True)),
                ('warnings', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, size=None)),
                ('coverage_unit', models.CharField(blank=True, max_length=30)),
                ('coverage_found', models.IntegerField(default=0)),
                ('coverage_indexed', models.IntegerField(default=0)),
                ('chunk_count', models.IntegerField(default=0)),
                ('embedded_count', models.IntegerField(default=0)),
                ('attempts', models.IntegerField(default=0)),
                ('heartbeat_at', models.DateTimeField(blank=True, null=True)),
                ('embedding_started_at', models.DateTimeField(blank=True, null=True)),
                ('source_created_at', models.DateTimeField(blank=True, null=True)),
                ('source_updated_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('indexed_at', models.DateTimeField(blank=True, null=True)),
                ('seen_at', models.DateTimeField(editable=False, help_text='When a sync last met it at its source.', null=True)),
                ('replaces', accounts.tenancy.TenantForeignKey(blank=True, db_constraint=False, db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='replacements', to='knowledge.document')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='ClusterEvidence',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('quote', models.TextField()),
                ('chunk', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='knowledge.chunk')),
                ('cluster', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='evidence', to='knowledge.cluster')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
                ('document', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='knowledge.document')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.AddField(
            model_name='chunk',
            name='document',
            field=accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='chunks', to='knowledge.document'),
        ),
        migrations.CreateModel(
            name='KnowledgeBase',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=200)),
                ('slug', models.SlugField(allow_unicode=True, blank=True, help_text='Short name used in searches and addresses. Empty: made from the name.', max_length=100)),
                ('description', models.TextField(blank=True, help_text='What an agent finds here, in a sentence or two.')),
                ('status', models.CharField(choices=[('active', 'Active'), ('archived', 'Archived')], default='active', max_length=10)),
                ('embedding_model', models.CharField(editable=False, max_length=200)),
                ('embedding_field', models.CharField(choices=[('embedding', 'First'), ('embedding_alternate', 'Second')], default='embedding', editable=False, help_text="The vector field of its chunks that holds this model's vectors.", max_length=20)),
                ('spare_model', models.CharField(blank=True, default='', editable=False, help_text='The model whose vectors the other field holds; empty: none, or leftovers.', max_length=200)),
                ('spare_since', models.DateTimeField(blank=True, editable=False, help_text='Since when the other field has not been of use to search; empty: it is empty.', null=True)),
                ('own_indexes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), blank=True, default=list, editable=False, help_text='The chunk columns for which the base has a finished index of its own.', size=None)),
                ('source_boosts', models.JSONField(blank=True, default=dict, help_text='Factors for the scores of sources, such as {"wiki": 1.5}; 1 changes nothing.')),
                ('language', models.CharField(choices=[('auto', 'Recognise for each passage'), ('en', 'English'), ('zh', '中文'), ('ja', '日本語'), ('ko', '한국어'), ('de', 'Deutsch'), ('fr', 'Français'), ('es', 'Español'), ('it', 'Italiano'), ('pt', 'Português'), ('ru', 'Русский'), ('ar', 'العربية'), ('hi', 'हिन्दी')], default='auto', help_text='Language of the documents.', max_length=8)),
                ('chunk_size', models.PositiveIntegerField(default=256, help_text='Target length of a chunk in tokens.')),
                ('chunk_overlap', models.PositiveIntegerField(default=32, help_text='Tokens that neighbouring chunks share.')),
                ('chunk_separator', models.CharField(blank=True, help_text='Cut at this text first, e.g. --- on its own line. Empty: by structure only.', max_length=50)),
                ('average_length', models.FloatField(default=120.0, editable=False, help_text='Average terms in a chunk, as used in the stored BM25 weights.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.AddField(
            model_name='document',
            name='knowledge_base',
            field=accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='documents', to='knowledge.knowledgebase'),
        ),
        migrations.AddField(
            model_name='cluster',
            name='knowledge_base',
            field=accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='clusters', to='knowledge.knowledgebase'),
        ),
        migrations.AddField(
            model_name='chunk',
            name='knowledge_base',
            field=accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='chunks', to='knowledge.knowledgebase'),
        ),
        migrations.CreateModel(
            name='LengthStatistic',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('language', models.CharField(blank=True, max_length=8)),
                ('chunks', models.IntegerField()),
                ('length', models.BigIntegerField()),
                ('knowledge_base', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='knowledge.knowledgebase')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='ReEmbedding',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('from_model', models.CharField(max_length=200)),
                ('to_model', models.CharField(max_length=200)),
                ('field', models.CharField(max_length=20)),
                ('status', models.CharField(choices=[('queued', 'Waiting for a worker'), ('running', 'Computing vectors; search uses the old ones'), ('ready', 'Vectors complete; preparing to switch'), ('switched', 'Done; search uses the new vectors'), ('failed', 'Failed; search uses the old vectors'), ('cancelled', 'Cancelled; search uses the old vectors'), ('rolled_back', 'Rolled back; search uses the old vectors')], default='queued', max_length=12)),
                ('total', models.IntegerField(default=0)),
                ('done', models.IntegerField(default=0)),
                ('reused', models.IntegerField(default=0)),
                ('shortened', models.IntegerField(default=0)),
                ('error', models.TextField(blank=True)),
                ('error_code', models.CharField(blank=True, max_length=50)),
                ('attempts', models.IntegerField(default=0)),
                ('is_emptied', models.BooleanField(default=False)),
                ('lanes', models.JSONField(default=list)),
                ('claims', models.JSONField(default=dict)),
                ('cursor', models.UUIDField(null=True)),
                ('started_by', models.CharField(max_length=300)),
                ('heartbeat_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('knowledge_base', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='reembeddings', to='knowledge.knowledgebase')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='TermStatistic',
            fields=[
                ('id', models.UUIDField(default=accounts.tenancy.new_id, editable=False, primary_key=True, serialize=False)),
                ('term', models.TextField()),
                ('chunks', models.IntegerField()),
                ('knowledge_base', accounts.tenancy.TenantForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='knowledge.knowledgebase')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='accounts.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'default_manager_name': 'objects',
            },
        ),
        migrations.AddConstraint(
            model_name='knowledgebase',
            constraint=models.UniqueConstraint(fields=('tenant', 'slug'), name='one_base_per_slug'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(fields=['tenant', 'knowledge_base', '-created_at', '-id'], name='document_newest_first'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(condition=models.Q(('status__in', ['pending', 'processing'])), fields=['heartbeat_at'], name='document_unfinished'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(fields=['tenant', 'knowledge_base', 'source'], name='document_by_source'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(fields=['tenant', 'knowledge_base', 'author'], name='document_by_author'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(fields=['tenant', 'knowledge_base', 'content_type'], name='document_by_content_type'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=django.contrib.postgres.indexes.HashIndex(condition=models.Q(('source_uri', ''), _negated=True), fields=['source_uri'], name='document_by_source_uri'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(models.F('tenant'), models.F('knowledge_base'), models.Case(models.When(source_created_at=None, then=models.F('created_at')), default=models.F('source_created_at')), name='document_by_created_at'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(models.F('tenant'), models.F('knowledge_base'), models.Case(models.When(source_updated_at=None, then=models.F('updated_at')), default=models.F('source_updated_at')), name='document_by_updated_at'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=django.contrib.postgres.indexes.GinIndex(fields=['metadata'], name='document_by_metadata', opclasses=['jsonb_path_ops']),
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(condition=models.Q(('source_id__isnull', False)), fields=['tenant', 'source_id'], name='document_by_source_id'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(condition=models.Q(models.Q(('external_id', ''), _negated=True), ('replaces', None)), fields=('tenant', 'knowledge_base', 'external_id', 'source_id'), name='one_document_per_external_id', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(condition=models.Q(('external_id', ''), ('replaces', None)), fields=('tenant', 'knowledge_base', 'content_hash'), name='one_document_per_content'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(condition=models.Q(('replaces__isnull', False)), fields=('tenant', 'replaces'), name='one_new_version_at_a_time'),
        ),
        migrations.AddConstraint(
            model_name='chunk',
            constraint=models.UniqueConstraint(fields=('tenant', 'document', 'live', 'ordinal'), name='one_chunk_per_place'),
        ),
        migrations.AddConstraint(
            model_name='reembedding',
            constraint=models.UniqueConstraint(condition=models.Q(('status__in', ['queued', 'running', 'ready'])), fields=('tenant', 'knowledge_base'), name='one_reembedding_at_a_time'),
        ),
        migrations.AddIndex(
            model_name='termstatistic',
            index=models.Index(fields=['tenant', 'knowledge_base', 'term'], include=('chunks',), name='term_by_base'),
        ),
        tenant_table("knowledge_knowledgebase"),
        tenant_table(
            "knowledge_document",
            {"knowledge_base_id": "knowledge_knowledgebase", "replaces_id": "knowledge_document"},
        ),
        tenant_table(
            "knowledge_chunk",
            {"knowledge_base_id": "knowledge_knowledgebase", "document_id": "knowledge_document"},
        ),
        tenant_table("knowledge_cluster", {"knowledge_base_id": "knowledge_knowledgebase"}),
        tenant_table(
            "knowledge_clusterevidence",
            {
                "cluster_id": "knowledge_cluster",
                "document_id": "knowledge_document",
                "chunk_id": "knowledge_chunk",
            },
        ),
        tenant_table("knowledge_lengthstatistic", {"knowledge_base_id": "knowledge_knowledgebase"}),
        tenant_table("knowledge_reembedding", {"knowledge_base_id": "knowledge_knowledgebase"}),
        tenant_table("knowledge_termstatistic", {"knowledge_base_id": "knowledge_knowledgebase"}),
        # A row is read for its weights and vector far more often than for its text: the text goes out
        # of line first, what is compared stays in the row.
        migrations.RunSQL(
            """
            ALTER TABLE knowledge_chunk ALTER COLUMN embedding SET STORAGE MAIN;
            ALTER TABLE knowledge_chunk ALTER COLUMN embedding_alternate SET STORAGE MAIN;
            ALTER TABLE knowledge_chunk ALTER COLUMN lexical_weights SET STORAGE MAIN;
            """,
            migrations.RunSQL.noop,
        ),
        # Row-level security applies its condition first, and lets an index answer another one only if
        # that cannot leak what it compares. The full-text match and the JSON path (`@?`, which is silent about
        # what it cannot compare) cannot; PostgreSQL does not know it. Only a superuser may say so; without
        # it the lexical search and filters on metadata are right, and slower on large bases.
        migrations.RunSQL(
            """
            DO $$ BEGIN
              IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
                ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) LEAKPROOF;
                ALTER FUNCTION pg_catalog.jsonb_path_exists_opr(jsonb, jsonpath) LEAKPROOF;
              END IF;
            END $$
            """,
            migrations.RunSQL.noop,
        ),
    ]
