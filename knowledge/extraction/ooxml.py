"""Office Open XML packages (docx, xlsx, pptx): parts, relations, and facts of a zip container.

Read here and not with the libraries' own package readers, which refuse Strict files, packages with
a wrong or missing content type, and files of which a single part is damaged.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from lxml import etree

from knowledge.extraction.archives import open_zip
from knowledge.extraction.base import ExtractionError, Fault, Limits, Source
from knowledge.extraction.dates import iso_date

RELATIONS_NAMESPACE = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_STRICT = b"http://purl.oclc.org/ooxml/"
# Strict files use other names for the same things. Longest first: some names begin with others.
_TRANSITIONAL_OF_STRICT = {
    b"wordprocessingml/main": b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    b"spreadsheetml/main": b"http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    b"presentationml/main": b"http://schemas.openxmlformats.org/presentationml/2006/main",
    b"officeDocument/relationships": b"http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    b"officeDocument/math": b"http://schemas.openxmlformats.org/officeDocument/2006/math",
    b"drawingml/": b"http://schemas.openxmlformats.org/drawingml/2006/",
}
_CORE_FACTS = {"subject": "subject", "keywords": "keywords", "category": "category"}
_READ_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError)


@dataclass(frozen=True, slots=True)
class Relation:
    """A part that another part points to; `kind` is the last word of the relation type."""

    kind: str
    target: str


class Package:
    """The parts of one file. Names are looked up without regard to case, as Office does."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self._filename = source.filename
        self._archive: zipfile.ZipFile = open_zip(source, limits)
        self._names = {_canonical(name): name for name in self._archive.namelist()}
        self._relations: dict[str, Mapping[str, Relation]] = {}
        self.damaged: list[str] = []

    def has(self, name: str) -> bool:
        """Whether there is a part of this name."""
        return _canonical(name) in self._names

    def names(self, prefix: str) -> list[str]:
        """The names of the parts below a folder."""
        return [
            name for name in self._names.values() if _canonical(name).startswith(prefix.lower())
        ]

    def read(self, name: str) -> bytes | None:
        """The bytes of a part; None where it is missing or damaged (then noted in `damaged`)."""
        member = self._names.get(_canonical(name))
        if member is None:
            return None
        try:
            return self._archive.read(member)
        except _READ_FAULTS:
            self._note_damage(name)
            return None

    def xml(self, name: str) -> etree._Element | None:
        """The root of an XML part, in Transitional names; of a damaged part as much as can be read."""
        data = self.read(name)
        if not data:
            return None
        data = _transitional(data)
        try:
            return etree.fromstring(data, _parser(recover=False))
        except etree.XMLSyntaxError:
            self._note_damage(name)
        try:
            return etree.fromstring(data, _parser(recover=True))
        except etree.XMLSyntaxError:
            return None

    def iter_xml(self, name: str, tag: str) -> Iterator[etree._Element]:
        """The elements of one name in a large XML part, one at a time; each is emptied after use."""
        data = self.read(name)
        if not data:
            return
        stream = io.BytesIO(_transitional(data))
        elements = etree.iterparse(
            stream, tag=tag, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
        )
        try:
            for _, element in elements:
                yield element
                element.clear()
                parent = element.getparent()
                while parent is not None and element.getprevious() is not None:
                    del parent[0]
        except etree.XMLSyntaxError:
            self._note_damage(name)

    def main_part(self, *fallbacks: str) -> str:
        """The name of the part that is the document. Raises `ExtractionError` where there is none."""
        for relation in self.relations("").values():
            if relation.kind == "officeDocument" and self.has(relation.target):
                return relation.target
        for name in fallbacks:
            if self.has(name):
                return name
        raise self.corrupt()

    def relations(self, part: str) -> Mapping[str, Relation]:
        """The parts inside the package that `part` points to, by relation id."""
        if part not in self._relations:
            self._relations[part] = self._read_relations(part)
        return self._relations[part]

    def related(self, part: str, kind: str) -> list[str]:
        """The names of the parts of one kind that `part` points to."""
        return [
            relation.target for relation in self.relations(part).values() if relation.kind == kind
        ]

    def facts(self) -> tuple[str, dict[str, str]]:
        """The title and the metadata in the document's properties."""
        names = [*self.related("", "core-properties"), "docProps/core.xml"]
        root = next((root for name in names if (root := self.xml(name)) is not None), None)
        values: dict[str, str] = {}
        for node in root if root is not None else ():
            if isinstance(node.tag, str):
                # Not `etree.QName`: names in a damaged part are not always names.
                values[node.tag.rpartition("}")[2]] = (node.text or "").strip()
        facts = {key: values.get(name, "") for key, name in _CORE_FACTS.items()}
        facts["author"] = values.get("creator", "")
        facts["created_at"] = iso_date(values.get("created", ""))
        facts["updated_at"] = iso_date(values.get("modified", ""))
        return values.get("title", ""), facts

    def corrupt(self) -> ExtractionError:
        """The error for a package without a readable document."""
        return ExtractionError(
            Fault.CORRUPT,
            f"{self._filename} is damaged: its document part is missing or cannot be read. Open it in "
            "the program it comes from, save it again, and upload the new copy.",
        )

    def damage_warning(self) -> str:
        """What to say of damaged parts; empty when all could be read."""
        if not self.damaged:
            return ""
        return f"The file is damaged; text may be missing from: {', '.join(self.damaged[:10])}."

    def _read_relations(self, part: str) -> Mapping[str, Relation]:
        folder, _, name = part.rpartition("/")
        root = self.xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        found: dict[str, Relation] = {}
        for node in root if root is not None else ():
            if not isinstance(node.tag, str) or node.get("TargetMode") == "External":
                continue
            target = unquote(node.get("Target", "")).replace("\\", "/")
            kind = node.get("Type", "").rpartition("/")[2]
            path = posixpath.normpath(posixpath.join("/", folder, target))
            found[node.get("Id", "")] = Relation(kind, path.lstrip("/"))
        return found

    def _note_damage(self, name: str) -> None:
        if name not in self.damaged:
            self.damaged.append(name)


def _canonical(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()


def _transitional(data: bytes) -> bytes:
    if _STRICT in data:
        for strict, transitional in _TRANSITIONAL_OF_STRICT.items():
            data = data.replace(_STRICT + strict, transitional)
    return data


def _parser(*, recover: bool) -> etree.XMLParser:
    # Entities stay unresolved and nothing is fetched; sizes were checked when the zip was opened.
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, recover=recover
    )
