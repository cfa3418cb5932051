"""From a path to results: unpack, parse, find the format by what the document holds, never by the file's name."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from pathlib import Path
from types import ModuleType

from engine.regular_file import LargeFile, NoRegularFile, open_regular
from engine.store.database_file import is_beside_a_database, is_database
from engine.store.errors import plain_cause
from engine.store.importing import kernel_tuner_cache, t4
from engine.store.importing.results import ForeignResults, NotResults
from engine.typed_path import BadPath, typed_path

FORMATS: tuple[ModuleType, ...] = (kernel_tuner_cache, t4)
"""Each has NAME, recognizes(document), names_kernel(document) and read(document, name, gpu)."""

MAX_BYTES = 2**30
_GZIP = b"\x1f\x8b"
_NAME_ONE = "name a file of `emmy export`, a Kernel Tuner cache file or a T4 file"


def read_results(
    path: Path, name: str = "", gpu: str = "", document: dict[str, object] | None = None
) -> ForeignResults:
    """The results in a JSON file, packed with gzip or not. `name` and `gpu` stand in place of the file's own.

    `document` is what `read_document` read from it, if somebody did already. A format that doesn't name its kernel
    takes the file's name. Raises NotResults, whose text names the file.
    """
    document = read_document(path) if document is None else document
    for known in FORMATS:
        if known.recognizes(document):
            try:
                results: ForeignResults = known.read(document, name or _unnamed(known, document, path), gpu)
                return results
            except NotResults as error:
                raise NotResults(f"{path} is not imported: {error}") from None
            except (ValueError, TypeError, OverflowError, AttributeError) as error:
                raise NotResults(
                    f"{path} is not imported: it is no sound {known.NAME} file ({plain_cause(error)})"
                ) from None
    names = " and ".join(f"{known.NAME} files" for known in FORMATS)
    raise NotResults(f"{path} is of no known format; files of `emmy export`, {names} can be imported")


def _unnamed(known: ModuleType, document: dict[str, object], path: Path) -> str:
    """The file's name without .json and .gz where the document doesn't name its kernel, else ""."""
    return "" if known.names_kernel(document) else path.name.removesuffix(".gz").removesuffix(".json")


def read_document(path: Path) -> dict[str, object]:
    """The object in a JSON file, packed with gzip or not. Raises NotResults, whose text names the file."""
    try:
        path = typed_path(path)
    except BadPath as error:
        raise NotResults(str(error)) from None
    if is_database(path) or is_beside_a_database(path):
        raise NotResults(f"{path} is no JSON text; it is a database, and `emmy merge` reads those")
    try:
        data = _unpacked(path)
    except FileNotFoundError:
        raise NotResults(f"there is no file {path}: {_NAME_ONE}") from None
    except IsADirectoryError:
        raise NotResults(f"{path} is a folder: {_NAME_ONE}") from None
    except NoRegularFile:
        raise NotResults(f"{path} is a pipe or a device, and no file: {_NAME_ONE}") from None
    except LargeFile:
        raise NotResults(
            f"{path} holds more than {MAX_BYTES >> 20} MiB of text, which is the most that is read"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise NotResults(f"{path} is a damaged or cut off gzip file; get it again") from None
    except OSError as error:
        raise NotResults(
            f"{path} can't be read ({error.strerror or error}): make it readable, or name another"
        ) from None
    try:
        document = json.loads(data)
    except json.JSONDecodeError as error:
        raise NotResults(f"{path} is {_broken(error)}; {_NAME_ONE}") from None
    except (ValueError, RecursionError):
        raise NotResults(f"{path} is no JSON text: {_NAME_ONE}") from None
    if not isinstance(document, dict):
        raise NotResults(f"{path} is JSON, but no object; it is not of a known format")
    return document


def _unpacked(path: Path) -> bytes:
    """The file's text. Raises OSError, LargeFile among them, and what gzip raises."""
    with open_regular(path) as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        if not packed and os.fstat(file.fileno()).st_size > MAX_BYTES:
            raise LargeFile(path, MAX_BYTES)
        data = (gzip.GzipFile(fileobj=file) if packed else file).read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise LargeFile(path, MAX_BYTES)
    return data


def _broken(error: json.JSONDecodeError) -> str:
    """What a text is that is no JSON, and in which line."""
    if error.msg.startswith("Unterminated string") or error.pos >= len(error.doc.rstrip()) - 1:
        return f"no complete JSON: it is cut off at line {error.lineno}"
    # Python's parser takes these words, but for what follows them
    word = re.search(r"-?(NaN|Infinity)$", error.doc[: error.pos])
    if word is not None:
        return f"no JSON: {word[0]} in line {error.lineno} is no number there"
    return f"no JSON text: line {error.lineno}, column {error.colno} can't be read ({_cause(error.msg)})"


def _cause(message: str) -> str:
    """What Python's parser says, without the place, as the inside of a sentence."""
    said = message.split(":")[0].removesuffix(" at").strip()
    return said[:1].lower() + said[1:]
