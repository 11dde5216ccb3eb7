"""Reads conversations from files and stores them, each exactly once."""

from annals_client.importers.documents import FORMATS, Document, ImportFileError, read_documents
from annals_client.importers.load import Importer, ImportOptions, ImportSummary

__all__ = [
    "FORMATS",
    "Document",
    "ImportFileError",
    "ImportOptions",
    "ImportSummary",
    "Importer",
    "read_documents",
]
