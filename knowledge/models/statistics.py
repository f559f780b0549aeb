"""What BM25 needs to know of a base: in how many chunks a term occurs, how many there are, how long.

Both tables are append-only ledgers: indexing adds rows, deleting adds negative ones, in the same
transaction as the chunks. So parallel workers never wait for one another on a common word, and sums
are right at any moment. A periodic task folds the rows of a base together.
"""

from __future__ import annotations

from django.db import models

from accounts.tenancy import TenantForeignKey, TenantModel


class TermStatistic(TenantModel):
    """A change of the number of searchable chunks of a base that hold a term."""

    knowledge_base = TenantForeignKey("knowledge.KnowledgeBase", related_name="+")
    term = models.TextField()
    chunks = models.IntegerField()

    class Meta(TenantModel.Meta):
        indexes = [
            models.Index(
                fields=["tenant", "knowledge_base", "term"], include=["chunks"], name="term_by_base"
            )
        ]

    def __str__(self) -> str:
        return f"{self.term}: {self.chunks:+}"


class LengthStatistic(TenantModel):
    """A change of the number and summed length (in terms) of searchable chunks, by language."""

    knowledge_base = TenantForeignKey("knowledge.KnowledgeBase", related_name="+")
    language = models.CharField(max_length=8, blank=True)
    chunks = models.IntegerField()
    length = models.BigIntegerField()

    class Meta(TenantModel.Meta):
        pass

    def __str__(self) -> str:
        return f"{self.language}: {self.chunks:+}"
