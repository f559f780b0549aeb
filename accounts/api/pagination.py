"""Lists of any length at a constant price a page."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination


class CreatedCursorPagination(CursorPagination):
    """Newest first; `limit` sets the size of a page. The id decides between rows of one moment."""

    ordering: tuple[str, ...] = ("-created_at", "-id")
    page_size_query_param = "limit"
    max_page_size = 200
