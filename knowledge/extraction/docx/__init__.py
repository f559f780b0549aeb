"""Word files: blocks (`body`), running text (`runs`), styles and list numbers (`styles`, `numbering`)."""

from knowledge.extraction.docx.extractor import DocxExtractor

__all__ = ["DocxExtractor"]
