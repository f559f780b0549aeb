"""The search test page, the search history and the dashboard."""

from search.admin.dashboard import dashboard_context
from search.admin.history import SearchQueryAdmin

__all__ = ["SearchQueryAdmin", "dashboard_context"]
