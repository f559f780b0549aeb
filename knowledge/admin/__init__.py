"""The admin of bases, documents and chunks. Whatever it changes goes through the services."""

from knowledge.admin.chunk import ChunkAdmin
from knowledge.admin.document import DocumentAdmin
from knowledge.admin.knowledge_base import KnowledgeBaseAdmin

__all__ = ["ChunkAdmin", "DocumentAdmin", "KnowledgeBaseAdmin"]
