"""Excel files: cells (`cells`), number formats (`formats`), tables in sheets (`tables`), notes (`extras`)."""

from knowledge.extraction.xlsx.extractor import XlsxExtractor

__all__ = ["XlsxExtractor"]
