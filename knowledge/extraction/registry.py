"""The table of file formats: name → extractor, imported on first use."""

from __future__ import annotations

from importlib import import_module

from knowledge.extraction.base import Extractor

EXTRACTORS: dict[str, str] = {
    "text": "knowledge.extraction.text.TextExtractor",
    "markdown": "knowledge.extraction.markdown.MarkdownExtractor",
    "html": "knowledge.extraction.html.HtmlExtractor",
    "json": "knowledge.extraction.json.JsonExtractor",
    "jsonl": "knowledge.extraction.jsonl.JsonlExtractor",
    "csv": "knowledge.extraction.csv.CsvExtractor",
    "yaml": "knowledge.extraction.yaml.YamlExtractor",
    "xml": "knowledge.extraction.xml.XmlExtractor",
    "code": "knowledge.extraction.code.CodeExtractor",
    "eml": "knowledge.extraction.eml.EmlExtractor",
    "pdf": "knowledge.extraction.pdf.PdfExtractor",
    "docx": "knowledge.extraction.docx.DocxExtractor",
    "xlsx": "knowledge.extraction.xlsx.XlsxExtractor",
    "pptx": "knowledge.extraction.pptx.PptxExtractor",
}


def load_extractor(name: str) -> Extractor:
    """The extractor of a format. Raises `KeyError` for a name not in the table."""
    module, _, attribute = EXTRACTORS[name].rpartition(".")
    extractor: type[Extractor] = getattr(import_module(module), attribute)
    return extractor()
