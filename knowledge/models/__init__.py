"""Knowledge bases and what is in them."""

from knowledge.models.chunk import Chunk
from knowledge.models.cluster import Cluster, ClusterEvidence
from knowledge.models.document import Document
from knowledge.models.knowledge_base import KnowledgeBase
from knowledge.models.reembedding import ReEmbedding
from knowledge.models.statistics import LengthStatistic, TermStatistic

__all__ = [
    "Chunk",
    "Cluster",
    "ClusterEvidence",
    "Document",
    "KnowledgeBase",
    "LengthStatistic",
    "ReEmbedding",
    "TermStatistic",
]
