"""Other people's results as rows of our database: one file a format, one transaction for all files of an import."""

from engine.store.importing.reading import FORMATS, read_document, read_results
from engine.store.importing.recording import Imported
from engine.store.importing.results import ForeignResults, ForeignRow, NotResults

__all__ = ["FORMATS", "ForeignResults", "ForeignRow", "Imported", "NotResults", "read_document", "read_results"]
