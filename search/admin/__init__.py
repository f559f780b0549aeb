"""The search test page, the search history, golden queries, synonyms and the dashboard."""

from search.admin.dashboard import dashboard_context
from search.admin.golden import GoldenQueryAdmin
from search.admin.golden_runs import GoldenRunAdmin
from search.admin.history import SearchQueryAdmin
from search.admin.synonyms import SynonymSetAdmin

__all__ = [
    "GoldenQueryAdmin",
    "GoldenRunAdmin",
    "SearchQueryAdmin",
    "SynonymSetAdmin",
    "dashboard_context",
]
