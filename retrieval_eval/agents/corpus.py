"""The documents that agents search."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from judges.errors import InputError
from judges.types import Document


@dataclass(frozen=True)
class Corpus:
    """Documents with ids that are unique; those without any text cannot be found and are left out.

    Attributes:
        documents: in the order given.
        blank: how many were left out.
    """

    documents: tuple[Document, ...]
    blank: int = 0

    @staticmethod
    def of(documents: Iterable[Document]) -> Corpus:
        """Check and keep.

        Raises:
            InputError: there is no text at all, or two documents have one id.
        """
        given = tuple(documents)
        counts = Counter(document.doc_id for document in given)
        if repeated := [doc_id for doc_id, count in counts.items() if count > 1]:
            raise InputError(f"two documents have the id {repeated[0]!r}; give each its own")
        kept = tuple(document for document in given if searched_text(document).strip())
        if not kept:
            raise InputError("there is no text to search; add documents with words")
        return Corpus(kept, len(given) - len(kept))

    @cached_property
    def digest(self) -> str:
        """Tells corpora apart that would be searched differently; the order of the documents does not matter."""
        total = hashlib.sha256()
        for document in sorted(self.documents, key=lambda document: document.doc_id):
            fields = [document.doc_id, document.metadata.get("title", ""), document.text]
            total.update(json.dumps(fields, separators=(",", ":")).encode())
        return total.hexdigest()[:32]

    @cached_property
    def by_id(self) -> dict[str, Document]:
        """The documents by doc_id."""
        return {document.doc_id: document for document in self.documents}


def searched_text(document: Document) -> str:
    """What is searched of a document: its title and its text."""
    title = document.metadata.get("title", "")
    return f"{title}\n{document.text}" if title else document.text
