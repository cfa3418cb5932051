"""A call with tensors that exist, as a program of ours and the tensors that are its inputs: what a deployment captures.

It runs in the caller's process and computes nothing: torch.export follows the call with tensors that hold no values.
What kernels couldn't do as the call does it is refused in words: changed arguments or buffers, random values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from engine.capture.convert import convert, created_in, refuse_writes
from engine.capture.errors import (
    CaptureError,
    DataDependentError,
    EffectError,
    FilledCacheError,
    UnsupportedOpError,
    UnsupportedTensorError,
)
from engine.capture.export import allows_tf32, export
from engine.capture.feeding import CALLED, Feed, part_name
from engine.capture.leaving import Fills, Leaves
from engine.capture.levels import differentiates, left_as_it_was
from engine.capture.meta import DATA_TEXT, is_data_dependent
from engine.capture.quiet import quiet
from engine.capture.reading import Reading
from engine.ir.plan import Program


@dataclass(frozen=True, slots=True)
class LiveProgram:
    """`sources[i]` is what input i of the program's graph is: the position of a tensor among the call's arguments, or
    a tensor that the function holds (a parameter, a buffer, a constant).

    `rebuild` makes of the program's outputs what the call returns. `literals` are those among the sources that the
    code made itself, of numbers in it.
    """

    program: Program
    sources: tuple[int | torch.Tensor, ...]
    rebuild: Callable[[list[torch.Tensor]], Any]
    literals: tuple[torch.Tensor, ...] = ()


class _Call(nn.Module):
    """The call of tensors alone. `refill` and `note` are plain functions, which torch.export doesn't copy."""

    def __init__(
        self,
        function: Callable[..., Any],
        refill: Callable[..., Any],
        note: Callable[..., None],
        noted: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__()
        self._refill = refill
        self._note = note
        self._noted = noted
        self._called = function

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args, kwargs = self._refill(tensors)
        with self._noted(), left_as_it_was():
            returned = self._called(*args, **kwargs)
        # a size is a value: pytree would make a plain tuple of it
        leaves, structure = pytree.tree_flatten(returned, is_leaf=lambda one: isinstance(one, torch.Size))
        if any(isinstance(leaf, torch.SymInt | torch.SymFloat | torch.SymBool) for leaf in leaves):
            raise DataDependentError(DATA_TEXT)
        for leaf in leaves:
            if not isinstance(leaf, torch.Tensor | torch.Size | int | float | bool | str | None):
                raise UnsupportedTensorError(f"The call returns a {type(leaf).__name__}, which is not a tensor.")
        found = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        first = {id(one): place for place, one in reversed(list(enumerate(found)))}
        self._note([first[id(leaf)] if isinstance(leaf, torch.Tensor) else (leaf,) for leaf in leaves], structure)
        return tuple(found)


def capture_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    text: str = "",
    weights: frozenset[int] = frozenset(),
    *,
    stops_effects: bool = True,
    cached: frozenset[CodeType] = frozenset(),
) -> LiveProgram:
    """The program of `function(*args, **kwargs)`, under no_grad. `weights` are positions among its tensors that never
    change between calls. Where only what it computes is wanted, what it does besides needn't be stopped.
    `cached` is code that must not run, as a cache would keep what it computes.

    Raises CaptureError (one sentence) for what can't be captured, or can't be done by kernels as the call does it.
    """
    if differentiates(function):
        raise UnsupportedOpError("It differentiates inside (torch.func), which kernels here can't follow.")
    feed = Feed.of(function, args, kwargs)
    returned: list[Any] = []
    literals: list[torch.Tensor] = []
    reading = Reading(any(tensor.requires_grad for tensor in feed.tensors), stops_effects, cached)
    call = _Call(
        function,
        lambda given: feed.refilled(given),
        lambda kept, shape: returned.append((kept, shape)),
        lambda: reading.noted(),
    )
    exported = _exported(call, feed, literals, reading)
    given: dict[str, tuple[str, torch.Tensor]] = {}
    sources: dict[str, int | torch.Tensor] = {}
    labels: dict[str, str] = {}
    for index, (label, tensor) in enumerate(zip(feed.labels, feed.tensors, strict=True)):
        name = f"tensors_{index}"
        given[name], sources[name], labels[name] = (name, tensor.detach()), index, label
    for name, (label, tensor) in _held(exported).items():
        given[name], sources[name], labels[name] = (name, tensor), tensor, label
    fixed = frozenset(f"tensors_{index}" for index in weights)
    with _in_the_users_names(feed.labels):
        try:
            graph = convert(exported, given, allows_tf32(), keep_unread=False, also_weights=fixed)
        except RuntimeError as error:
            if is_data_dependent(error):
                raise DataDependentError(DATA_TEXT) from None
            raise
    program = Program(replace(graph, labels=tuple(labels[name] for name in graph.labels)), text, _place(feed.tensors))
    return LiveProgram(program, tuple(sources[key] for key in graph.labels), _rebuilder(*returned[-1]), tuple(literals))


def _exported(call: _Call, feed: Feed, literals: list[torch.Tensor], reading: Reading) -> ExportedProgram:
    """The call as torch.export follows it. Raises CaptureError."""
    try:
        with quiet(), _in_the_users_names(feed.labels):
            exported = export(call, tuple(tensor.detach() for tensor in feed.tensors), literals)
    except Fills as fills:
        raise FilledCacheError(str(fills)) from None
    except Leaves as leaves:
        raise EffectError(str(leaves)) from None
    except UnsupportedOpError:
        if reading.problem:
            raise DataDependentError(reading.problem) from None
        raise
    if reading.problem:
        raise DataDependentError(reading.problem)
    _refuse_side_effects(exported)
    return exported


@contextmanager
def _in_the_users_names(labels: tuple[str, ...]) -> Iterator[None]:
    """What is raised in the block calls arguments and parts as the user does, instead of by names made up here."""
    try:
        yield
    except CaptureError as error:
        text = re.sub(r"\btensors_(\d+)\b", lambda found: labels[int(found[1])], str(error))
        text = re.sub(r"\b(c_)?(lifted_tensor|_tensor_constant)_?\d+\b", "a tensor that the code holds", text)
        raise type(error)(re.sub(rf"\b(self\.)?{CALLED}\.", "", text)) from None


def _refuse_side_effects(exported: ExportedProgram) -> None:
    refuse_writes(exported)
    created = created_in(exported)
    if created:
        raise UnsupportedOpError(f"The call draws values of its own (aten.{created}): no kernel is generated for that.")


def _held(exported: ExportedProgram) -> dict[str, tuple[str, torch.Tensor]]:
    """Label and tensor of what the function holds, by placeholder."""
    found: dict[str, tuple[str, torch.Tensor]] = {}
    for spec in exported.graph_signature.input_specs:
        name, target = str(getattr(spec.arg, "name", "")), str(spec.target)
        label = part_name(target)
        if spec.kind is InputKind.PARAMETER or (spec.kind is InputKind.BUFFER and target in exported.state_dict):
            found[name] = (label, exported.state_dict[target].detach())
        elif spec.kind in (InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            tensor = exported.constants[target]
            assert isinstance(tensor, torch.Tensor)
            found[name] = (label, tensor.detach())
    return found


def _place(tensors: tuple[torch.Tensor, ...]) -> str:
    return tensors[0].device.type if tensors else "cuda"


def _rebuilder(kept: list[Any], structure: Any) -> Callable[[list[torch.Tensor]], Any]:
    """`kept` has for each leaf its value, or the place of the tensor that it is: one that is returned twice is one."""

    def rebuild(tensors: list[torch.Tensor]) -> Any:
        leaves = [tensors[leaf] if isinstance(leaf, int) else leaf[0] for leaf in kept]
        return pytree.tree_unflatten(leaves, structure)

    return rebuild
