"""What functools.lru_cache keeps: its keys and results, as the garbage collector is told of them.

Entries can't be put back, so a trial must neither add one nor clear them: what it computes may be no real tensor, and
the user's own entries may be of another time than what the function would compute now.
"""

from __future__ import annotations

import functools
import gc
import types
from typing import Any


def entries_of(cache: functools._lru_cache_wrapper[Any]) -> list[object]:
    """Keys and results, in no order that means anything."""
    if not cache.cache_info().currsize:
        return []
    own = (cache.__wrapped__, cache.__dict__, *_of_every_cache())
    found: list[object] = []
    for one in gc.get_referents(cache):
        if any(one is part for part in own):
            continue
        if type(one) is dict and cache.cache_info().maxsize is None:
            found.extend(one)
            found.extend(one.values())
        elif type(one) is not dict or not _is_index(one):
            found.append(one)
    return found


def code_of(cache: functools._lru_cache_wrapper[Any]) -> types.CodeType | None:
    """The code that computes an entry; None if that isn't a plain function of Python's."""
    function = cache.__wrapped__
    return function.__code__ if isinstance(function, types.FunctionType) else None


@functools.cache
def _of_every_cache() -> tuple[object, ...]:
    """What every cache holds besides: classes, and the mark that keys have between positions and names."""
    return tuple(one for one in gc.get_referents(functools.lru_cache(maxsize=1)(repr)) if type(one) is not dict)


def _is_index(kept: dict[Any, Any]) -> bool:
    """Whether this is a bounded cache's own dictionary, whose items are told of one by one besides."""
    return bool(kept) and all(type(item).__name__ == "_lru_list_elem" for item in kept.values())
