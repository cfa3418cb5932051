"""What `engine.compile` and the backend are given, checked at once: what is wrong is one sentence, said to whoever asks
in Python."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from engine.deploy.signatures import opened
from engine.store import StoreError
from engine.typed_path import BadPath, typed_file


@dataclass(frozen=True, slots=True)
class Settings:
    """`database` None is the user's own. With `strict_evidence` nothing runs that a prediction decides.

    `ptxas` assembles schedules with controls; None looks for the one that each was measured with.
    """

    database: Path | None = None
    strict_evidence: bool = False
    ptxas: Path | None = None


def settings_of(database: Any, strict: Any, ptxas: Any) -> Settings:
    """Raises TypeError for what is no path or no truth value, ValueError for a ptxas that isn't there, and StoreError
    for a database that can't be read."""
    path = _path("ptxas", ptxas)
    try:
        path = path and typed_file(path)
    except BadPath as error:
        raise ValueError(f"ptxas={str(path)!r}: {error}: name the ptxas that controls were measured with") from None
    if not isinstance(strict, bool):
        raise TypeError(f"strict_evidence is True or False, not {strict!r}")
    made = Settings(_path("db", database), strict, path)
    with asked_in_python(), opened(made.database):
        pass
    return made


def checked_function(function: Any) -> str:
    """The name of a module or function. Raises TypeError for what is neither."""
    if isinstance(function, type):
        raise TypeError(
            f"engine.compile takes a module or a function, not the class {function.__name__}: make one of it"
        )
    if isinstance(function, torch.Tensor) or not callable(function):
        raise TypeError(f"engine.compile takes a module or a function, not {_kind(function)}")
    if isinstance(function, nn.Module):
        return type(function).__name__
    return str(getattr(function, "__name__", type(function).__name__))


def call_of(function: Callable[..., Any], example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of the call that `example` stands for. Raises TypeError for what is no call of it."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(example, Mapping):
        kwargs = dict(example)
    elif isinstance(example, torch.Tensor):
        args = (example,)
    elif isinstance(example, tuple | list):
        args = tuple(example)
    else:
        raise TypeError(
            f"example_inputs is a tensor, a tuple of arguments, or a dictionary of named ones, not {_kind(example)}"
        )
    if not all(isinstance(name, str) for name in kwargs):
        raise TypeError("example_inputs names arguments by text: a key of the dictionary is none")
    try:
        signature = inspect.signature(function.forward if isinstance(function, nn.Module) else function)
    except (TypeError, ValueError):
        return args, kwargs
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"example_inputs don't fit {checked_function(function)}: {error}") from None
    return args, kwargs


@contextlib.contextmanager
def asked_in_python() -> Iterator[None]:
    """A database's error says what to do in Python."""
    try:
        yield
    except StoreError as error:
        raise type(error)(error.in_python) from None


def _path(name: str, given: Any) -> Path | None:
    if given is None:
        return None
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise TypeError(f"{name}= is a path, not {_kind(given)}")
    if "\0" in os.fspath(given):
        raise ValueError(f"{name}={given!r} is no path")
    return Path(given)


def _kind(given: Any) -> str:
    return "None" if given is None else f"something of the type {type(given).__name__}"
