"""Leaving torch as it was when code that changes torch's state for a while fails halfway.

A graph of torch.compile has no `with`: it turns on and off, operation by operation, what its code did in blocks
(levels of vmap, grad and jvp, gradients, autocast). Where one in between can't be followed, what is on would stay on,
and eager, which runs instead, would compute in another world.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
import torch.nn.attention
from torch.autograd import forward_ad

_C: Any = torch._C
_Put = Callable[[], object]
_DEVICES = ("cuda", "cpu")
_OF_LEVELS = frozenset({"_grad_increment_nesting", "_jvp_increment_nesting", "_enter_dual_level"})
"""What begins to differentiate in a graph of torch.compile."""


def differentiates(function: object) -> bool:
    """Whether it is a graph of torch.compile that differentiates inside (torch.func.grad, jvp and what is made of
    them): torch.export can't follow that outside of Python's blocks."""
    if not isinstance(function, torch.fx.GraphModule):
        return False
    graphs = [module.graph for module in function.modules() if isinstance(module, torch.fx.GraphModule)]
    return any(getattr(node.target, "__name__", "") in _OF_LEVELS for graph in graphs for node in graph.nodes)


@contextmanager
def left_as_it_was() -> Iterator[None]:
    """What is raised in the block leaves torch's levels and modes as they were before it."""
    depth = _C._functorch.get_dynamic_layer_stack_depth()
    in_dual_level = forward_ad._current_level >= 0
    modes = list(_modes())
    try:
        yield
    except BaseException as error:
        # some modes end when the last variable that holds them does
        traceback.clear_frames(error.__traceback__)
        if not in_dual_level:
            _leave_dual_level()
        _leave_levels(depth)
        for put in modes:
            put()
        raise


def _leave_levels(depth: int) -> None:
    """End levels of vmap, grad, jvp and functionalize, each in its own way, until there are `depth` of them."""
    levels, kinds = _C._functorch, _C._functorch.TransformType
    endings = {kinds.Grad: "grad", kinds.Vmap: "vmap", kinds.Jvp: "jvp", kinds.Functionalize: "func"}
    while levels.get_dynamic_layer_stack_depth() > depth:
        getattr(levels, f"_{endings[levels.peek_interpreter_stack().key()]}_decrement_nesting")()


def _leave_dual_level() -> None:
    """End forward-mode differentiation. torch has one level of it, and tells whether it is in it only when asked to
    enter another."""
    with suppress(RuntimeError):
        _C._enter_dual_level()
    _C._exit_dual_level(level=0)


def _modes() -> Iterator[_Put]:
    """What puts back each mode that an operation turns on or off."""
    yield _putting(_C._set_grad_enabled, torch.is_grad_enabled())
    yield _putting(_C._set_fwd_grad_enabled, _C._is_fwd_grad_enabled())
    inplace = _C._functorch
    yield _putting(inplace.set_inplace_requires_grad_allowed, inplace.get_inplace_requires_grad_allowed())
    message = _C._autograd._saved_tensors_hooks_get_disabled_error_message()
    if message is None:
        yield _C._autograd._saved_tensors_hooks_enable
    else:
        yield _putting(_C._autograd._saved_tensors_hooks_disable, message)
    for device in _DEVICES:
        yield _putting(torch.set_autocast_enabled, device, torch.is_autocast_enabled(device))
        yield _putting(torch.set_autocast_dtype, device, torch.get_autocast_dtype(device))
    yield _putting(torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled())
    yield _putting(_leave_autocast, _autocast_depth())
    attention: Any = torch.nn.attention
    backends = attention._cur_sdpa_kernel_backends(with_priority=True)
    yield _putting(attention._sdpa_kernel, backends, True)
    yield _putting(
        torch.use_deterministic_algorithms,
        torch.are_deterministic_algorithms_enabled(),
        warn_only=torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def _autocast_depth() -> int:
    """In how many blocks of autocast this is; torch tells only who enters or leaves one."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def _leave_autocast(depth: int) -> None:
    for _ in range(_autocast_depth() - depth):
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()


def _putting(put: Callable[..., object], *values: object, **named: object) -> _Put:
    return lambda: put(*values, **named)
