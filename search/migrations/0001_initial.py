import accounts.tenancy
import django.contrib.postgres.fields
import django.db.models.deletion
from accounts.tenancy import tenant_table
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
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
    ]
