"""What may be tuned, checked as text, without torch: Python code, a model, or a function or module of a file.

Code is Python whose last statement is a call. A model or a file is one line that says all that decides the program:
its name, the layer, dtype, sequence length and batch, and for what lies on this machine a digest of its text. That
line is what a run is known by.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.capture.errors import NotACallError, TargetMissingError, TargetOptionError, TargetSyntaxError
from engine.regular_file import read_regular
from engine.typed_path import BadPath, typed_path

LARGEST_BYTES = 64 << 20
"""Of a file of Python, or of a model's configuration."""
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}
_KNOWN_DTYPES = ("bfloat16", "float16", "float32")
_LARGEST = 2**24
_MODEL_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_FILE_NAME = re.compile(r"(?P<path>.+\.py):(?P<attribute>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)")
_LINE = re.compile(
    r"(?P<name>\S|\S.*?\S)(?: --layer (?P<layer>\d+))? --dtype (?P<dtype>\w+) --seq-len (?P<seq_len>\d+)"
    r" --batch (?P<batch>\d+)(?: --source (?P<source>[0-9a-f]+))?"
)
_FILE_LINE = re.compile(
    r"(?P<name>.+\.py:[\w.]+?)(?: --dtype (?P<dtype>\w+))?(?: --seq-len (?P<seq_len>\d+))?(?: --batch (?P<batch>\d+))?"
    r" --source (?P<source>[0-9a-f]+)"
)
"""Of a file only what differs from how it is fed anyway is said."""
_DIGEST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """How a model is fed: which layer alone (None: the whole model), the dtype of its weights, tokens, sequences.

    Raises TargetOptionError for a dtype or a number that no model has.
    """

    layer: int | None = None
    dtype: str = "bfloat16"
    seq_len: int = 512
    batch: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", _DTYPES.get(self.dtype, self.dtype))
        if self.dtype not in _KNOWN_DTYPES:
            known = ", ".join(_KNOWN_DTYPES)
            raise TargetOptionError(f"--dtype {self.dtype[:20]} is not known: it is one of {known}.")
        if not 1 <= self.seq_len <= _LARGEST or not 1 <= self.batch <= _LARGEST:
            raise TargetOptionError(f"--seq-len and --batch are whole numbers from 1 to {_LARGEST}.")
        if self.layer is not None and not 0 <= self.layer <= _LARGEST:
            raise TargetOptionError("--layer is the number of a layer, counted from 0.")

    def text(self) -> str:
        layer = "" if self.layer is None else f" --layer {self.layer}"
        return f"{layer} --dtype {self.dtype} --seq-len {self.seq_len} --batch {self.batch}"

    def difference_text(self) -> str:
        """What of it isn't the default; a file's function is fed its own examples, and seldom asks for these."""
        plain = TargetOptions()
        shown = (
            ("--dtype", self.dtype, plain.dtype),
            ("--seq-len", self.seq_len, plain.seq_len),
            ("--batch", self.batch, plain.batch),
        )
        return "".join(f" {name} {value}" for name, value, default in shown if value != default)


@dataclass(frozen=True, slots=True)
class ParsedTarget:
    """`statements` run first, `call` is what is tuned; `text` is what was typed."""

    text: str
    statements: str
    call: str


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """`name` is a Hugging Face id or a local folder; `source` is the digest of the folder's configuration."""

    text: str
    name: str
    options: TargetOptions
    source: str = ""


@dataclass(frozen=True, slots=True)
class FileTarget:
    """`attribute` (a function or a module) of the Python file at `path`, whose digest is `source`."""

    text: str
    path: str
    attribute: str
    options: TargetOptions
    source: str = ""


Target = ParsedTarget | ModelTarget | FileTarget


def parse_target(text: str, options: TargetOptions | None = None) -> Target:
    """Code, or, with `options` or written as `target_text` writes it, a model or a file.

    Raises TargetSyntaxError or NotACallError for code, and what `target_text` raises.
    """
    whole = text if options is None else target_text(text, options)
    line = _LINE.fullmatch(whole) or _FILE_LINE.fullmatch(whole)
    if line is None or (options is None and _is_python(text)):
        return _parse_code(text)
    read = _read_options(line.groupdict())
    whole, name, source = line[0], line["name"], line["source"] or ""
    file = _FILE_NAME.fullmatch(name)
    if file is not None:
        return FileTarget(whole, file["path"], file["attribute"], read, source)
    return ModelTarget(whole, name, read, source)


def _read_options(said: Mapping[str, str | None]) -> TargetOptions:
    """What a line says, and the defaults where it says nothing."""
    plain = TargetOptions()
    layer = said.get("layer")
    return TargetOptions(
        int(layer) if layer else None,
        said.get("dtype") or plain.dtype,
        int(said.get("seq_len") or plain.seq_len),
        int(said.get("batch") or plain.batch),
    )


def target_text(name: str, options: TargetOptions) -> str:
    """The one line that says what is tuned, of a model's id, a folder, or file.py:function_or_module.

    Raises TargetMissingError for a file or folder that isn't there, TargetOptionError for a layer of a file, and
    TargetSyntaxError for what is none of these.
    """
    name = name.strip()
    if options.layer is not None and _FILE_NAME.fullmatch(name):
        raise TargetOptionError("--layer picks a layer of a Hugging Face model: name the layer itself of a file.")
    if _LINE.fullmatch(name) or _FILE_LINE.fullmatch(name) or any(not character.isprintable() for character in name):
        raise TargetSyntaxError("The target is a name; how it is fed is said by --layer, --dtype, --seq-len, --batch.")
    text = options.difference_text() if _FILE_NAME.fullmatch(name) else options.text()
    return f"{name}{text}{_source_text(name)}"


def folder_named(name: str) -> Path:
    """The folder that a target's name would mean, whether it is there or not. Raises TargetMissingError."""
    try:
        return typed_path(name)
    except BadPath as error:
        raise TargetMissingError(f"{error}.") from None


def source_digest(name: str) -> str:
    """The digest of the file or of the folder's configuration that a name means; empty for an id.

    Raises TargetMissingError or TargetSyntaxError.
    """
    file = _FILE_NAME.fullmatch(name)
    path = Path(file["path"]) if file is not None else folder_named(name) / "config.json"
    if file is None and name.endswith(".py") and Path(name).is_file():
        raise TargetSyntaxError(f"{name} is a file: name the function or module of it that is meant, as in {name}:f.")
    if not name or (file is None and not folder_named(name).is_dir()):
        if _MODEL_NAME.fullmatch(name) is None:
            raise TargetSyntaxError(
                f"`{name[:80]}` is no model's id, no folder, and no file.py:function_or_module; for code, give --code."
            )
        return ""
    try:
        return hashlib.sha256(read_regular(path, LARGEST_BYTES)).hexdigest()[:_DIGEST_DIGITS]
    except OSError as error:
        if file is None and isinstance(error, FileNotFoundError):
            raise TargetMissingError(
                f"{name} holds no config.json: name the folder of a Hugging Face model, or file.py:function_or_module."
            ) from None
        raise TargetMissingError(f"{path} can't be read ({error.strerror or error}): name another.") from None


def _source_text(name: str) -> str:
    digest = source_digest(name)
    return f" --source {digest}" if digest else ""


def _is_python(text: str) -> bool:
    """A line of `target_text` never is, unless its options stand in a comment, and then it is code."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _parse_code(text: str) -> ParsedTarget:
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError) as error:
        where = f" at line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        cause = error.msg if isinstance(error, SyntaxError) else str(error)
        raise TargetSyntaxError(f"The code doesn't parse{where}: {cause}.") from None
    if not body:
        raise NotACallError("The code is empty: give an expression that calls something, e.g. torch.mm(a, b).")
    last = body[-1]
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        found = ast.unparse(last).splitlines()[0][:60]
        raise NotACallError(f"The last statement must be a call, and it is `{found}`: end with e.g. torch.mm(a, b).")
    return ParsedTarget(text, "\n".join(ast.unparse(node) for node in body[:-1]), ast.unparse(last.value))
