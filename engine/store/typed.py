"""Whether a record that came from a row holds what its fields promise: SQLite lets any column hold anything."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints


class NoText(str):
    """What stands for a text of a database that is no UTF-8: its bytes, the wrong ones as escapes."""

    __slots__ = ()

    @classmethod
    def or_text(cls, data: bytes) -> str:
        """The text that these bytes are, or what stands for it."""
        try:
            return data.decode()
        except UnicodeDecodeError:
            return cls(data.decode(errors="backslashreplace"))


class WrongValue(ValueError):
    """A value that isn't what its column promises; `promised` says what that is, whatever the value."""

    def __init__(self, text: str, promised: str) -> None:
        super().__init__(text)
        self.promised = promised


T = TypeVar("T")
Check = Callable[[Any], bool]


def checked(record: T) -> T:
    """The record, a frozen dataclass of numbers, texts and tuples of them. Raises ValueError for a field that isn't."""
    kind: Any = type(record)
    for name, fits in _checks(kind):
        value = getattr(record, name)
        if type(value) is NoText:
            raise ValueError(f"its {name} is no UTF-8")
        if not fits(value):
            raise WrongValue(f"{name} is {str(value)[:60]!r}", name)
    return record


@cache
def _checks(kind: Any) -> tuple[tuple[str, Check], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, _check(hints[field.name])) for field in fields(kind))


def _check(hint: Any) -> Check:
    if get_origin(hint) in (Union, types.UnionType):
        options = [_check(option) for option in get_args(hint)]
        return lambda value: any(fits(value) for fits in options)
    if get_origin(hint) is tuple:
        return _tuple_check(get_args(hint))
    if hint is float:
        return lambda value: type(value) in (float, int)
    if hint is int:
        return lambda value: type(value) is int
    if hint in (bool, str, bytes, type(None)) or (isinstance(hint, type) and issubclass(hint, str)):
        kind = str if isinstance(hint, type) and issubclass(hint, str) else hint
        return lambda value: isinstance(value, kind) and type(value) is not NoText
    return lambda value: True


def _tuple_check(arguments: tuple[Any, ...]) -> Check:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        fits = _check(arguments[0])
        return lambda value: isinstance(value, tuple) and all(fits(item) for item in value)
    each = [_check(argument) for argument in arguments]
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(each)
        and all(fits(item) for fits, item in zip(each, value, strict=True))
    )
