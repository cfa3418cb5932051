"""What a call depends on besides its arguments: what its function reaches, and torch's own state.

A capture freezes what Python code reads. `Guard.state` gives that as one comparable value at every call, and a call
with another state is captured anew. As long as `watching` finds everything as it was, the state is the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.nn.modules import module as of_modules

from engine.capture.export import allows_tf32
from engine.deploy.codes import Said
from engine.deploy.kinds import odd_kind
from engine.deploy.reaching import Reach
from engine.deploy.restoring import Holder, Saved
from engine.deploy.watching import Watch
from engine.runtime import one_line


@dataclass(frozen=True, slots=True)
class State:
    """Equal as long as the function would do the same with the same arguments, but for the values of `tensors`.

    `problem` says in words what can't be watched; then the call has to run in eager. `names` are those that the code
    says, `ids` the identities of `tensors`.
    """

    marks: tuple[object, ...]
    problem: str = ""
    tensors: tuple[torch.Tensor, ...] = field(default=(), compare=False)
    names: frozenset[str] = field(default=frozenset(), compare=False)
    ids: frozenset[int] = field(default=frozenset(), compare=False)


@dataclass(slots=True)
class Guard:
    """Gives the state of one function."""

    function: Callable[..., Any]
    _codes: dict[int, Said] = field(default_factory=dict)
    _last: tuple[Watch, State] | None = None

    def state(self) -> State:
        """What the function reaches now; the same object as before while nothing of it changed."""
        if self._last is None or not self._last[0].holds():
            reach = Reach(self._codes, None)
            try:
                reach.from_(self.function)
            except Exception as error:  # an object's own class says what asking for an attribute does
                return State((), f"an object that it reaches can't be looked at: {raised_text(error)}")
            tensors = tuple(reach.watch.tensors)
            marks, ids = tuple(reach.marks), frozenset(map(id, tensors))
            self._last = reach.watch, State(marks, reach.problem, tensors, frozenset(reach.names), ids)
        return self._last[1]

    def saved(self) -> Saved:
        """Keep what the function could change now."""
        holders: list[Holder] = []
        Reach(self._codes, holders).from_(self.function)
        return Saved(holders)


def raised_text(error: Exception) -> str:
    """What an object's own code raised, in words."""
    text = one_line(str(error))
    return f"its own code raised {type(error).__name__}{f' ({text})' if text else ''}"


def ambient() -> tuple[object, ...]:
    """What of torch's own state decides what a call computes: autocast and its dtypes, defaults, TF32, global hooks."""
    kinds = ("cuda", "cpu")
    casts = tuple(torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None for kind in kinds)
    hooks = (of_modules._global_forward_hooks, of_modules._global_forward_pre_hooks)
    hooked = tuple(id(hook) for each in hooks for hook in each.values())
    return (*casts, torch.get_default_dtype(), torch.get_default_device(), allows_tf32(), hooked)


def is_transformed() -> bool:
    """Whether torch makes something else of operations now: vmap and other transforms, forward-mode differentiation,
    tracing, a mode of the user's. Then a call has to be left to it, operation by operation."""
    modes: Any = torch._C
    return bool(
        modes._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or modes._len_torch_dispatch_stack()
        or modes._len_torch_function_stack() > _of_default_device()
        or modes._get_tracing_state() is not None
    )


def _of_default_device() -> int:
    """How many modes torch keeps for a default device."""
    modes: Any = torch._C
    stack = [modes._get_function_stack_at(i) for i in range(modes._len_torch_function_stack())]
    return sum(type(mode).__module__ == "torch.utils._device" for mode in stack)


def unsuitable(tensors: Sequence[torch.Tensor]) -> str:
    """What kind of tensor is among these that no kernel takes, in words; "" if there is none."""
    odd = odd_kind(tensors)
    return f"a tensor among its arguments is of the kind {odd}" if odd else ""
