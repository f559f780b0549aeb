"""The search test page, the search history, golden queries and the dashboard."""

from search.admin.dashboard import dashboard_context
from search.admin.golden import GoldenQueryAdmin
from search.admin.golden_runs import GoldenRunAdmin
from search.admin.history import SearchQueryAdmin

__all__ = ["GoldenQueryAdmin", "GoldenRunAdmin", "SearchQueryAdmin", "dashboard_context"]
