"""Deployments that several graphs of torch.compile share.

torch.compile makes a graph of a function for the first length it sees, and one for all lengths when a second comes. The
latter takes the first length over, and what it then captures is the program that was built for the former. Kept here
is what was built, weakly: it lives as long as a graph that runs it.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from engine.capture import CaptureError
from engine.capture.live import LiveProgram
from engine.deploy.arguments import Settings
from engine.deploy.guarding import State, ambient
from engine.deploy.signatures import Deployed, Unsuitable, capture_unchanged
from engine.deploy.watching import about


class Shared:
    """What was built for graphs of torch.compile, by all of a call that can be told before it is captured."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], weakref.WeakSet[Deployed]] = {}

    def keep(self, settings: Settings, tensors: Sequence[torch.Tensor], fixed: frozenset[int], entry: Deployed) -> None:
        """Offer what was built to other graphs, unless it returns an input or a view of one: of equal programs one may
        return the tensor itself, and another a view of all of it."""
        if any(view.buffer < len(entry.live.sources) for view in entry.deployment.grouping.outputs):
            return
        self._kept = {key: kept for key, kept in self._kept.items() if kept}
        self._kept.setdefault(_key(settings, tensors, fixed), weakref.WeakSet()).add(entry)

    def find(
        self,
        settings: Settings,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        tensors: Sequence[torch.Tensor],
        fixed: frozenset[int],
        state: State | None,
    ) -> Deployed | None:
        """What was built for the program that this call is; None where there is none. It captures the call only if
        something might be."""
        kept = list(self._kept.get(_key(settings, tensors, fixed), ()))
        if not kept:
            return None
        try:
            live, learns = capture_unchanged(function, args, {}, fixed, state)
        except (CaptureError, Unsuitable):
            return None
        same = next((entry for entry in kept if _alike(entry.live, live)), None)
        return replace(same, live=live, learns=learns, asked=False) if same is not None else None


@functools.cache
def shared() -> Shared:
    """The one of this process: torch.compile calls a backend anew for each graph, and gives it no place of its own."""
    return Shared()


def _key(settings: Settings, tensors: Sequence[torch.Tensor], fixed: frozenset[int]) -> tuple[object, ...]:
    """Where tensors lie counts for those that stay in place."""
    told = (
        about(tensor) if i in fixed else (*about(tensor)[1:], tensor.storage_offset())
        for i, tensor in enumerate(tensors)
    )
    return settings, tuple(told), fixed, ambient()


def _alike(one: LiveProgram, other: LiveProgram) -> bool:
    graphs = [replace(live.program.graph, labels=()) for live in (one, other)]
    return (
        graphs[0] == graphs[1]
        and len(one.sources) == len(other.sources)
        and all(map(_same_source, one.sources, other.sources))
    )


def _same_source(one: int | torch.Tensor, other: int | torch.Tensor) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return bool(about(one) == about(other))
    return isinstance(one, int) and isinstance(other, int) and one == other
