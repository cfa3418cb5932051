"""One signature of a call, from its arguments to something that runs: captured, chosen, built, and checked once.

The evidence is that of this GPU and these versions. Where there is no GPU, Triton's interpreter runs the kernels if it
was asked to (TRITON_INTERPRET=1), with the evidence of the newest recorded run.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from engine.capture.leaving import can_watch
from engine.capture.levels import left_as_it_was
from engine.capture.live import LiveProgram, capture_call
from engine.deploy.caches import code_of
from engine.deploy.controls import ControlsHere
from engine.deploy.deployment import Deployment, deployment
from engine.deploy.execution import Runner, WeightsMoved, check_against, make_runner, version_of
from engine.deploy.guarding import Guard, State
from engine.deploy.likeness import OTHER_BRANCH, same_values, tensors_of
from engine.deploy.restoring import Saved
from engine.ir.plan import BufferView
from engine.prior import steering
from engine.runtime import interprets, read_context, read_target, whole_storage
from engine.store import Store, default_database_path, opened_to_read, unlike
from engine.vocabulary import Target

LEFT_OUT_SHOWN = 5
"""Rows that can't be read, of which a deployment tells."""


class Unsuitable(Exception):
    """The call can't run as a deployment; the text is one sentence for a person."""


class ChangesItself(Unsuitable):
    """The call changes what the function holds: attributes, globals, tensors."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Deployed:
    """A call of one signature that runs: give it the tensors among the arguments, in order.

    `learns` says that a tensor that the function holds and the kernels read wants gradients, `asked` whether that is
    known of what the function makes itself. `detached` are the outputs that want none in eager, whatever they lie in,
    `held` those that are tensors which the function holds: these are given themselves, as are `arguments`, by their
    place among the call's tensors. A view of all of one is another tensor.
    """

    live: LiveProgram
    deployment: Deployment
    runner: Runner
    strides: tuple[tuple[int, ...], ...]
    learns: bool = False
    asked: bool = False
    detached: frozenset[int] = frozenset()
    held: tuple[tuple[int, torch.Tensor], ...] = ()
    arguments: tuple[tuple[int, int], ...] = ()

    def gives(self, eager: Sequence[torch.Tensor], given: Sequence[torch.Tensor], state: State | None) -> None:
        """Have outputs laid out, and be the tensors that eager was given, or that the function holds, where its are."""
        places = {id(tensor): place for place, tensor in reversed(list(enumerate(given)))}
        self.arguments = tuple((i, places[id(value)]) for i, value in enumerate(eager) if id(value) in places)
        self.strides = tuple(tuple(value.stride()) for value in eager)
        self.detached = frozenset(i for i, value in enumerate(eager) if not value.requires_grad)
        ids = state.ids if state is not None else frozenset()
        self.held = tuple((i, value) for i, value in enumerate(eager) if id(value) in ids)

    def inputs(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The program's inputs, in its order."""
        return [source if isinstance(source, torch.Tensor) else tensors[source] for source in self.live.sources]

    def __call__(self, tensors: Sequence[torch.Tensor]) -> Any:
        """What the call returns. Raises WeightsMoved."""
        inputs = self.inputs(tensors)
        views = self.deployment.grouping.outputs
        outputs = [_new(output, view, inputs) for output, view in zip(self.runner(inputs), views, strict=True)]
        laid = [_laid_out(*pair) for pair in zip(outputs, self.strides, strict=True)]
        for i in self.detached:
            if laid[i].requires_grad:
                laid[i] = laid[i].detach()
        for i, tensor in self.held:
            laid[i] = tensor
        for i, place in self.arguments:
            laid[i] = tensors[place]
        return self.live.rebuild(laid)


def deploy_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    fixed: frozenset[int],
    database: Path | None,
    strict: bool,
    *,
    pins: bool = True,
    text: str = "",
    ptxas: Path | None = None,
    state: State | None = None,
) -> Deployed:
    """Capture the call, choose, build and check, all on copies: arguments and what the function holds stay as they are.

    `fixed` are positions among the call's tensors that never change; `ptxas` is the one for schedules with controls
    (None: looked for). With `state`, the one before the call, a tensor that isn't reached in it is refused, as a change
    of it couldn't be seen.

    Raises CaptureError, DeploymentError, StoreError, BuildError and Unsuitable, each a sentence.
    """
    leaves = pytree.tree_leaves((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    device = _one_device(tensors)
    refuse_place(device)
    refuse_values(leaves)
    live, learns = capture_unchanged(function, args, kwargs, fixed, state, text)
    if _has_negative_zero(live):
        raise Unsuitable("it computes with -0.0, which programs here don't tell from 0.0")
    with opened(database) as store:
        context_key, target, controls = place(store, device, ptxas)
        prior = steering(store.path).latest
        chosen = deployment(
            live.program, store, context_key, target, prior, strict=strict, pins=pins, controls=controls
        )
        chosen = replace(chosen, notes=(*chosen.notes, *map(str, unlike(store.bad_rows)[:LEFT_OUT_SHOWN])))
    entry = Deployed(live, chosen, _unready, (), learns)
    inputs = entry.inputs(tensors)
    _refuse_inputs(inputs)
    entry.runner = make_runner(chosen, live.program.graph, inputs)
    with _unchanged(function):
        returned, given = _tried(function, args, kwargs, fixed)
    eager = tensors_of(returned)
    if any(value.grad_fn is not None for value in eager):
        raise Unsuitable("it enables gradients itself")
    try:
        ours = entry.runner(inputs)
        wrong = check_against(live.program.graph, inputs, ours, eager)
    except WeightsMoved:
        raise Unsuitable("its weights move while it runs") from None
    if wrong:
        raise Unsuitable(wrong)
    if not same_values(live.rebuild(ours), returned):
        raise Unsuitable(OTHER_BRANCH)
    if [value.dtype for value in eager] != [value.dtype for value in ours]:
        raise Unsuitable("its outputs have other dtypes than eager's")
    if any(one.requires_grad and not other.requires_grad for one, other in zip(eager, ours, strict=True)):
        raise Unsuitable("it returns a tensor that wants gradients, and is none of its arguments")
    entry.gives(eager, given, state)
    return entry


def _refuse_inputs(inputs: Sequence[torch.Tensor]) -> None:
    """Raises Unsuitable for what kernels can't read as one call's."""
    if len({tensor.device for tensor in inputs}) > 1:
        raise Unsuitable("its tensors and weights lie on several devices")
    if any(tensor.is_neg() or tensor.is_conj() for tensor in inputs):
        raise Unsuitable("it reads a tensor that torch negates or conjugates only when it is read (a view of .conj())")


def capture_unchanged(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    fixed: frozenset[int],
    state: State | None,
    text: str = "",
) -> tuple[LiveProgram, bool]:
    """The program of a call, and whether a weight of it wants gradients; the function stays as it is.

    With `state` the call stands for one of the user's, and what it does besides computing is refused.

    Raises CaptureError, and Unsuitable for a tensor that the state doesn't hold.
    """
    with _unchanged(function) as saved:
        cached = frozenset(code for code in map(code_of, saved.caches) if code is not None)
        if cached and not can_watch():
            raise Unsuitable("a profiler is on, so that what it would put into a cache of functools' can't be seen")
        try:
            live = capture_call(function, args, kwargs, text, fixed, stops_effects=state is not None, cached=cached)
        finally:
            # where nothing is stopped the process is Emmy's own, and entries were made without values
            for cache in saved.caches if state is None else ():
                cache.cache_clear()
    return live, _all_watched(live, state) if state is not None else False


def wants_gradients(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], fixed: frozenset[int]
) -> bool:
    """Whether the call, where gradients are enabled, returns something that requires them. It is tried on copies."""
    with _unchanged(function), torch.enable_grad():
        return any(value.requires_grad for value in tensors_of(_tried(function, args, kwargs, fixed)[0]))


def _all_watched(live: LiveProgram, state: State) -> bool:
    """Whether a tensor that the kernels read wants gradients. Raises Unsuitable for one that the state doesn't hold."""
    known = {_place_of(tensor): tensor for tensor in state.tensors}
    made = {_place_of(tensor) for tensor in live.literals}
    learns = False
    for source in live.sources:
        if not isinstance(source, torch.Tensor) or _place_of(source) in made:
            continue
        if _place_of(source) not in known:
            raise Unsuitable("it reads a tensor that it reaches in a way that can't be watched")
        learns = learns or known[_place_of(source)].requires_grad
    return learns


def _place_of(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.is_conj(), tensor.is_neg()


def _has_negative_zero(live: LiveProgram) -> bool:
    """Whether a constant is -0.0: graphs with it and with 0.0 compare equal, so one could get the other's kernels."""
    values = (value for op in live.program.graph.ops for _, value in op.attributes)
    return any(isinstance(value, float) and value == 0.0 and math.copysign(1.0, value) < 0.0 for value in values)


@contextlib.contextmanager
def _unchanged(function: Callable[..., Any]) -> Iterator[Saved]:
    """Put back, after the block, what the function holds. Raises ChangesItself if that was changed in it."""
    saved = Guard(function).saved()
    try:
        yield saved
    except Exception:
        changed = saved.restore()
        if changed:
            raise _changes(changed) from None
        raise
    changed = saved.restore()
    if changed:
        raise _changes(changed)


def _changes(names: Sequence[str]) -> ChangesItself:
    known = list(dict.fromkeys(name for name in names if name))
    listed = f" ({', '.join(known[:3])})" if known else ""
    return ChangesItself(f"it changes what it holds itself{listed} while it runs")


def _tried(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], fixed: frozenset[int]
) -> tuple[Any, list[torch.Tensor]]:
    """What eager returns, and the tensors it is given, copies of the arguments'. Raises Unsuitable if it changes
    them."""
    leaves, structure = pytree.tree_flatten((args, kwargs))
    storages: dict[int, torch.Tensor] = {}
    positions = iter(range(len(leaves)))
    made: dict[int, torch.Tensor] = {}
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor) and next(positions) not in fixed and id(leaf) not in made:
            made[id(leaf)] = _copied(leaf, storages)
    copies = [made.get(id(leaf), leaf) for leaf in leaves]
    given = [leaf for leaf in copies if isinstance(leaf, torch.Tensor)]
    versions = list(map(version_of, given))
    own_args, own_kwargs = pytree.tree_unflatten(copies, structure)
    with left_as_it_was():
        returned = function(*own_args, **own_kwargs)
    after, shape = pytree.tree_flatten((own_args, own_kwargs))
    same = shape == structure and all(a is b for a, b in zip(after, copies, strict=True))
    if not same or versions != list(map(version_of, given)):
        raise Unsuitable("it changes one of its arguments")
    return returned, given


def _copied(tensor: torch.Tensor, storages: dict[int, torch.Tensor]) -> torch.Tensor:
    """A tensor of the same layout in memory of its own, which wants gradients if that does; tensors that share memory
    share their copies too."""
    return _laid_alike(tensor, storages).requires_grad_(tensor.requires_grad)


def _laid_alike(tensor: torch.Tensor, storages: dict[int, torch.Tensor]) -> torch.Tensor:
    if tensor.layout is not torch.strided:
        return tensor.detach().clone()
    storage = tensor.untyped_storage()
    if not storage.nbytes() or tensor.is_conj() or tensor.is_neg():
        return tensor.detach().clone()
    whole = storages.get(storage.data_ptr())
    if whole is None:
        whole = storages[storage.data_ptr()] = whole_storage(tensor, torch.uint8).clone()
    own = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return own.set_(whole.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())


def refuse_values(leaves: Sequence[Any]) -> None:
    """Raises Unsuitable for an argument whose value can't be compared from call to call."""
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor | int | float | bool | str | None):
            raise Unsuitable(f"an argument is a {type(leaf).__name__}, which is neither a tensor nor a plain value")


def place(store: Store, device: torch.device, ptxas: Path | None) -> tuple[str, Target, ControlsHere | None]:
    """Key of the context, the chip, and what of ptxas controls can be applied: this GPU's.

    Where Triton interprets, those of the newest recorded run; nothing is assembled then, so controls change nothing.
    """
    if device.type == "cuda":
        index = device.index or 0
        context = read_context(index)
        return context.key, read_target(index), ControlsHere(context, ptxas)
    latest = store.latest_run()
    return (latest.context_key, store.target(latest.context_key), None) if latest else ("", Target(), None)


def refuse_place(device: torch.device) -> None:
    """Raises Unsuitable for a device that no kernel runs on."""
    if device.type not in ("cuda", "cpu"):
        raise Unsuitable(f"it runs on {device.type}, and kernels are generated for CUDA GPUs")
    if device.type == "cpu" and not interprets():
        raise Unsuitable(
            "its tensors lie on the CPU, and kernels are generated for CUDA GPUs (TRITON_INTERPRET=1 interprets them"
            " there, slowly)"
        )


def opened(database: Path | None) -> contextlib.AbstractContextManager[Store]:
    """The database, to be read; one without rows where the user has none yet. Raises StoreError."""
    return opened_to_read(database or default_database_path(), may_be_missing=database is None)


def _one_device(tensors: Sequence[torch.Tensor]) -> torch.device:
    if not tensors:
        raise Unsuitable("no argument is a tensor")
    return tensors[0].device


def _laid_out(output: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """The output with eager's strides."""
    if output.stride() == strides or output.numel() == 0:
        return output
    return torch.empty_strided(output.shape, strides, dtype=output.dtype, device=output.device).copy_(output)


def _new(output: torch.Tensor, view: BufferView, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """The output, as a tensor of its own if it is an input: the plan's first buffers are these."""
    is_input = view.buffer < len(inputs) and output is inputs[view.buffer]
    return output.view(output.shape) if is_input else output


def _unready(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    raise RuntimeError("the deployment was called before it was built")
