"""`engine.compile` and `torch.compile(backend="emmy")`: a call that runs what was learned, and eager where it can't.

A call is taken apart into tensors and values. Each signature (shapes, strides, dtypes, devices, offsets and values, the
autocast state, and what the code reads besides: see `guarding`) is captured, deployed and checked once against eager on
copies, and kept. What can't be taken runs in eager from then on, and one warning says why. Training isn't supported: a
call that would need gradients is refused.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from engine.capture import CaptureError
from engine.capture.errors import FilledCacheError
from engine.capture.meta import DATA_TEXT, is_data_dependent
from engine.deploy.arguments import Settings, asked_in_python, call_of, checked_function, settings_of
from engine.deploy.compiled import CompiledFunction, CompiledModule, uncompiled
from engine.deploy.deployment import Deployment, DeploymentError, NoEvidenceError, UnfollowedPinError
from engine.deploy.execution import WeightsMoved
from engine.deploy.guarding import Guard, State, ambient, is_transformed, raised_text, unsuitable
from engine.deploy.keys import keys_of, signature, unfollowed
from engine.deploy.pinning import SilentFallbackError
from engine.deploy.sharing import Shared, shared
from engine.deploy.signatures import (
    ChangesItself,
    Deployed,
    Unsuitable,
    deploy_call,
    wants_gradients,
)
from engine.runtime import BuildError, one_line
from engine.store import StoreError

SIGNATURES_LIMIT = 64
"""Signatures kept for one call. Each holds buffers and a CUDA graph, and shapes that never come again would pile up."""

STATES_LIMIT = 16
"""States of what a function holds that are kept: each may keep weights in memory that the user has exchanged."""

GIVES_UP = 2
"""A function that was seen so often to change itself, or to hold what can't be watched, runs in eager for good: once
may be what it prepares at its first call."""


class TrainingError(RuntimeError):
    """The call would need gradients."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """A call taken apart: its leaves, the tensors among them, how the leaves lie in it, and keys that are no text."""

    leaves: Sequence[Any]
    tensors: Sequence[torch.Tensor]
    structure: Any
    keys: tuple[object, ...]


@dataclass(slots=True)
class CompiledCall:
    """A function whose calls run as deployments, one a signature. `deployments` are those in use, in order of need.

    `fixed` are positions among the tensors of a call that never change between calls, `pool` what graphs of one
    function share.
    """

    function: Callable[..., Any]
    settings: Settings
    name: str
    fixed: frozenset[int] = frozenset()
    pool: Shared | None = None
    builds: int = 0
    _entries: dict[tuple[object, ...], Deployed | None] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)
    _guard: Guard = field(init=False)
    _state: State | None = None
    _states: dict[State, int] = field(default_factory=dict)
    _newest: int = 0
    _failures: int = 0
    _filled: set[tuple[object, ...]] = field(default_factory=set)
    _frozen: State | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._guard = Guard(self.function)

    @property
    def deployments(self) -> list[Deployment]:
        return [entry.deployment for entry in self._entries.values() if entry is not None]

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run one call. Raises TrainingError where gradients are wanted, and what the function itself raises."""
        if is_transformed():
            return self.function(*args, **kwargs)
        taken = self._taken_apart(args, kwargs)
        if taken is None:
            return self.function(*args, **kwargs)
        tensors = taken.tensors
        learns = torch.is_grad_enabled()
        if learns and any(tensor.requires_grad for tensor in tensors):
            raise TrainingError(self._training_text())
        with torch.no_grad(), self._lock:
            for _ in range(2):
                key = self._key(taken)
                if learns and self._trains():
                    raise TrainingError(self._training_text())
                entry = self._entry(key, args, kwargs, tensors) if self._follows(tensors, learns) else None
                if entry is None:
                    break
                if learns and self._wants_gradients(entry, args, kwargs):
                    raise TrainingError(self._training_text())
                try:
                    return entry(tensors)
                except WeightsMoved:
                    del self._entries[key]
        return self.function(*args, **kwargs)

    def prepare(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Build the signature of a call without making it."""
        taken = self._taken_apart(args, kwargs)
        if taken is not None and not is_transformed():
            with torch.no_grad(), self._lock:
                key = self._key(taken)
                if self._follows(taken.tensors, False):
                    self._entry(key, args, kwargs, taken.tensors)
            self._filled.clear()

    def _taken_apart(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Taken | None:
        """What the call is made of; None, and a warning, where it holds what no kernel takes or can't be looked at."""
        try:
            leaves, structure = pytree.tree_flatten((tuple(args), dict(kwargs)))
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            taken = _Taken(leaves, tensors, structure, (*keys_of(args), *keys_of(kwargs)))
            odd = unsuitable(tensors)
        except Exception as error:  # an object's own class says what asking for its class does
            odd = f"an argument can't be looked at: {raised_text(error)}"
        if odd:
            self._say(odd)
            return None
        return taken

    def _key(self, taken: _Taken) -> tuple[object, ...]:
        number = self._number() if self._failures < GIVES_UP else 0
        of_arguments = signature(taken.leaves, taken.tensors, self.fixed)
        return number, of_arguments, taken.structure, taken.keys, ambient()

    def _follows(self, tensors: Sequence[torch.Tensor], learns: bool) -> bool:
        problem = unfollowed(self._state, tensors, self.fixed, learns) if self._state is not None else ""
        if problem:
            self._say(problem)
        return not problem

    def _wants_gradients(self, entry: Deployed, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether a call with gradients enabled would want them; asked once, by trying it."""
        if not entry.learns and not entry.asked:
            entry.learns = wants_gradients(self.function, tuple(args), dict(kwargs), self.fixed)
            entry.asked = True
        return entry.learns

    def _number(self) -> int:
        """The number of the state of what the function holds; a new one, where it was never so, drops the oldest."""
        state = self._guard.state()
        if state is self._state:
            return self._states[state]
        if state not in self._states:
            if len(self._states) >= STATES_LIMIT:
                gone = self._states.pop(next(iter(self._states)))
                self._entries = {key: entry for key, entry in self._entries.items() if key[0] != gone}
            self._newest += 1
            self._states[state] = self._newest
        self._state = state
        return self._states[state]

    def _entry(
        self,
        key: tuple[object, ...],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        tensors: Sequence[torch.Tensor],
    ) -> Deployed | None:
        if self._failures >= GIVES_UP or self._is_unwatchable():
            return None
        if key not in self._entries:
            if len(self._entries) >= SIGNATURES_LIMIT:
                self._say(f"more than {SIGNATURES_LIMIT} signatures: further ones run in eager")
                return None
            before, filled = self._failures, len(self._filled)
            entry = self._shared(args, tensors) or self._build(args, kwargs, key)
            if self._failures > before or len(self._filled) > filled:
                return entry
            self._entries[key] = entry
            if entry is not None and self.pool is not None:
                self.pool.keep(self.settings, tensors, self.fixed, entry)
        return self._entries[key]

    def _shared(self, args: Sequence[Any], tensors: Sequence[torch.Tensor]) -> Deployed | None:
        """What another graph of torch.compile was given for the same program."""
        if self.pool is None:
            return None
        return self.pool.find(self.settings, self.function, tuple(args), tensors, self.fixed, self._state)

    def _is_unwatchable(self) -> bool:
        if self._state is None or not self._state.problem:
            return False
        self._failures += 1
        self._say(self._state.problem)
        return True

    def _build(self, args: Sequence[Any], kwargs: Mapping[str, Any], key: tuple[object, ...]) -> Deployed | None:
        """The deployment of one signature; None, and a warning, where it runs in eager."""
        self.builds += 1
        settings = self.settings
        try:
            with asked_in_python():
                entry = deploy_call(
                    self.function,
                    tuple(args),
                    dict(kwargs),
                    self.fixed,
                    settings.database,
                    settings.strict_evidence,
                    ptxas=settings.ptxas,
                    state=self._state,
                )
        except FilledCacheError as error:
            # eager fills the cache now, and the next call of this signature may be captured
            self._failures += key[1:] in self._filled
            self._filled.add(key[1:])
            self._say(f"{str(error).rstrip('.')}; a call that finds it there can run by kernels")
            return None
        except ChangesItself as error:
            self._failures += 1
            self._say(str(error))
            return None
        except (NoEvidenceError, UnfollowedPinError, SilentFallbackError):
            raise
        except (CaptureError, DeploymentError, StoreError, BuildError, Unsuitable) as error:
            self._say(str(error))
            return None
        except torch.OutOfMemoryError:
            self._say("the buffers of its kernels don't fit into the GPU's memory")
            return None
        except Exception as error:  # whatever it is, eager is right
            cause = f"its kernels can't be run: {type(error).__name__}: {one_line(str(error))}"
            self._say(DATA_TEXT if is_data_dependent(error) else cause)
            return None
        for note in entry.deployment.notes:
            self._warn(f"emmy runs {self.name} with less than was learned: {note}.")
        return entry

    def _say(self, reason: str) -> None:
        self._warn(f"emmy runs {self.name} in eager: {reason.rstrip('.')}.")

    def _warn(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            warnings.warn(sentence, stacklevel=_levels_to_caller())

    def _trains(self) -> bool:
        """Whether a parameter of the module wants gradients. Asked once a state that holds them all, as a change of
        one is another state; where the state isn't looked at, at every call."""
        if not isinstance(self.function, nn.Module):
            return False
        state = self._state if self._failures < GIVES_UP else None
        if state is None or state is not self._frozen:
            own = list(self.function.parameters())
            if any(weight.requires_grad for weight in own):
                return True
            watched = state is not None and not state.problem and state.ids.issuperset(map(id, own))
            self._frozen = state if watched else None
        return False

    def _training_text(self) -> str:
        return (
            f"emmy doesn't train: {self.name} was called with gradients enabled and a tensor that requires them;"
            " call it under torch.no_grad() or torch.inference_mode()"
        )


def compile_callable(
    function: Callable[..., Any],
    example_inputs: Sequence[Any] | torch.Tensor | Mapping[str, Any] | None = None,
    *,
    db: str | Path | None = None,
    strict_evidence: bool = False,
    ptxas: str | Path | None = None,
) -> Any:
    """What `engine.compile` is: the module or function with its calls run by what the database knows.

    With `example_inputs` (a tensor, arguments, or a dictionary of named ones) their signature is built now, and nothing
    is run on them. A module gives a module, a function what is called as it is. `ptxas` assembles schedules with
    controls; None looks for it.

    Guarded at every call, so that a change is captured anew: shapes, strides, dtypes, devices and values of arguments;
    everything that the function reaches (`reaching` says how far); autocast, the default dtype and device, TF32. Values
    of weights are read where they lie. In eager, with one warning, runs what can't be watched, what changes attributes,
    globals or tensors that the function holds, and tensors that are sparse, nested or of a class of their own; in eager
    without one what torch transforms (vmap, forward-mode differentiation, tracing).

    Raises TypeError for what is no function, arguments or path, ValueError for a ptxas that isn't there, StoreError for
    a database that can't be read, and, now or when it is called, TrainingError for gradients, NoEvidenceError where
    `strict_evidence` forbids what a prediction decides, and UnfollowedPinError for a pin that can't be built here.
    """
    name = checked_function(function)
    settings = settings_of(db, strict_evidence, ptxas)
    call = call_of(function, example_inputs) if example_inputs is not None else None
    compiled: Any
    if isinstance(function, nn.Module):
        compiled = CompiledModule(function, lambda module: CompiledCall(module, settings, name))
    else:
        compiled = CompiledFunction(function, CompiledCall(function, settings, name))
    if call is not None:
        compiled.call.prepare(*call)
    return compiled


def emmy_backend(
    module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """The backend of `torch.compile(model, backend="emmy", options={...})`: "db", "strict_evidence", "ptxas".

    Shapes are deployed as they come: of a graph with symbolic shapes each set of numbers is a signature of its own.
    Raises ValueError for an option that it hasn't.
    """
    given = dict(options or {})
    settings = settings_of(given.pop("db", None), given.pop("strict_evidence", False), given.pop("ptxas", None))
    if given or mode is not None:
        unknown = ", ".join(sorted(given)) or f"mode={mode}"
        raise ValueError(f"the emmy backend has the options db, strict_evidence and ptxas, not {unknown}")
    call = CompiledCall(module, settings, "the compiled graph", _fixed(module), shared())

    made: Callable[..., Any] = uncompiled(call)
    return made


def _levels_to_caller() -> int:
    """How far up, from who asks, the code lies that made the call: neither ours nor torch's."""
    level, frame = 0, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in ("engine", "torch"):
        level, frame = level + 1, frame.f_back
    return level + 1


def _fixed(module: torch.fx.GraphModule) -> frozenset[int]:
    """Positions, among the tensors that a graph is called with, of those that torch.compile says stay in place."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    tensors = [node for node in placeholders if isinstance(node.meta.get("example_value"), torch.Tensor)]
    return frozenset(i for i, node in enumerate(tensors) if _is_static(node))


def _is_static(node: torch.fx.Node) -> bool:
    marks = node.meta.get("tensor_dict") or {}
    return "_dynamo_static_input_type" in marks or isinstance(node.meta.get("example_value"), nn.Parameter)
