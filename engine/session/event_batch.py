"""Events as text for a channel between our own processes, a batch at a time.

The engine's process packs while its search threads wait for the interpreter. So an event is taken apart by one call
of `attrgetter`, a quarter of what pickling the dataclass itself takes; whoever reads builds it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any

from engine.events import Event
from engine.tune import packed, unpacked


def pack_events(events: Sequence[Event]) -> str:
    """See `unpack_events`."""
    rows = []
    for event in events:
        kind: Any = type(event)
        rows.append((kind, _values_of(kind)(event)))
    return packed(rows)


def unpack_events(text: str) -> list[Event]:
    """The events in their order. Only for what our own process said."""
    return [kind(**dict(zip(_names(kind), values, strict=True))) for kind, values in unpacked(text)]


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _values_of(kind: Any) -> Callable[[Event], tuple[Any, ...]]:
    names = _names(kind)
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda event: (get(event),)
