"""What Emmy says while code runs: its warnings, in order."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def heard() -> Iterator[list[str]]:
    """The list has what Emmy warned of in the block, once that is left."""
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield sentences
    sentences += [str(one.message) for one in caught if "emmy" in str(one.message)]


def told(work: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What the work returns, and what Emmy warned of."""
    with heard() as said:
        result = work()
    return result, said
