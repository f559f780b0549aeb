"""PDF files: characters (`pages`), paragraphs (`layout`), forms, notes and facts (`extras`)."""

from knowledge.extraction.pdf.extractor import PdfExtractor

__all__ = ["PdfExtractor"]
