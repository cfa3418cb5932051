"""What code that fails halfway leaves of torch's levels and modes: nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.attention
from torch.autograd import forward_ad

from engine.capture.errors import UnsupportedOpError
from engine.capture.levels import differentiates, left_as_it_was
from engine.capture.live import capture_call

_C: Any = torch._C
X = torch.arange(12.0).view(3, 4) - 5.0


def graph_of(function: Callable[..., Any], *args: torch.Tensor) -> torch.fx.GraphModule:
    """The one graph that torch.compile makes of a function under no_grad."""
    graphs: list[torch.fx.GraphModule] = []

    def keep(module: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        graphs.append(module)
        return module

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(function, backend=keep, fullgraph=True)(*args)
    (graph,) = graphs
    return graph


def state() -> list[object]:
    torch.autocast_increment_nesting()
    return [
        *(torch.autocast_decrement_nesting(), torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        *(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.are_deterministic_algorithms_enabled()),
        *(_C._is_fwd_grad_enabled(), _C._functorch.get_dynamic_layer_stack_depth(), forward_ad._current_level),
        _C._functorch.get_inplace_requires_grad_allowed(),
        _C._autograd._saved_tensors_hooks_get_disabled_error_message(),
        torch.nn.attention._cur_sdpa_kernel_backends(with_priority=True),
        in_dual_level(),
    ]


def in_dual_level() -> bool:
    try:
        _C._enter_dual_level()
    except RuntimeError:
        return True
    _C._exit_dual_level(level=0)
    return False


def deep(number: int) -> None:
    for _ in range(number):
        _C._functorch._grad_increment_nesting()


CHANGES: dict[str, Callable[[], object]] = {
    "grad": lambda: deep(2),
    "vmap": lambda: _C._functorch._vmap_increment_nesting(3, "error"),
    "jvp": lambda: (_C._functorch._jvp_increment_nesting(), _C._enter_dual_level()),
    "dual level": lambda: _C._enter_dual_level(),
    "gradients": lambda: torch._C._set_grad_enabled(not torch.is_grad_enabled()),
    "forward gradients": lambda: _C._set_fwd_grad_enabled(False),
    "autocast": lambda: torch.autocast("cpu", torch.float16, cache_enabled=False).__enter__(),
    "hooks": lambda: _C._autograd._saved_tensors_hooks_disable("not here"),
    "in place": lambda: _C._functorch.set_inplace_requires_grad_allowed(True),
    "attention": lambda: torch.nn.attention._sdpa_kernel([torch.nn.attention.SDPBackend.MATH]),
    "deterministic": lambda: torch.use_deterministic_algorithms(True, warn_only=True),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_raised_undoes_each_change(what: str) -> None:
    before = state()
    with pytest.raises(ZeroDivisionError):
        _failing_after(CHANGES[what])
    assert state() == before


def _failing_after(change: Callable[[], object]) -> None:
    before = state()
    with left_as_it_was():
        change()
        assert state() != before
        raise ZeroDivisionError


def test_what_ends_with_its_variable_ends_with_the_block() -> None:
    def enter() -> None:
        held = torch.autograd.grad_mode._enter_inference_mode(True)
        assert torch.is_inference_mode_enabled()
        raise ZeroDivisionError(str(held))

    caught: list[BaseException] = []
    try:
        with left_as_it_was():
            enter()
    except ZeroDivisionError as error:
        caught.append(error)  # who keeps the error keeps its frames
    assert len(caught) == 1
    assert not torch.is_inference_mode_enabled()


def test_levels_that_were_there_stay() -> None:
    with forward_ad.dual_level(), torch.autocast("cpu", torch.bfloat16):
        torch.func.vmap(lambda row: (_fails_inside(), row)[1])(X)
        dual = forward_ad.make_dual(X, X)
        assert torch.equal(forward_ad.unpack_dual(dual * dual).tangent, 2 * X * X)
    assert not in_dual_level()


def _fails_inside() -> None:
    before = state()
    with pytest.raises(ZeroDivisionError):
        _failing_after(lambda: deep(3))
    assert state() == before


def test_what_succeeds_is_left_alone() -> None:
    with left_as_it_was():
        torch._C._set_grad_enabled(False)
    kept = torch.is_grad_enabled()
    torch._C._set_grad_enabled(True)
    assert not kept


DIFFERENTIATING: dict[str, Callable[[torch.Tensor], Any]] = {
    "grad": lambda a: torch.func.grad(lambda b: (b * b).sum())(a),
    "vmap of grad": lambda a: torch.func.vmap(torch.func.grad(lambda b: (b * b).sum()))(a),
    "jacfwd": lambda a: torch.func.jacfwd(lambda b: b * b)(a),
    "jacrev": lambda a: torch.func.jacrev(lambda b: b * b)(a),
    "jvp": lambda a: torch.func.jvp(lambda b: b * b, (a,), (a,)),
    "vjp": lambda a: torch.func.vjp(lambda b: b * b, a)[1](a),
    "hessian": lambda a: torch.func.hessian(lambda b: (b * b).sum())(a),
}


@pytest.mark.parametrize("what", DIFFERENTIATING)
def test_a_graph_that_differentiates_is_refused_before_it_runs(what: str) -> None:
    graph = graph_of(DIFFERENTIATING[what], X)
    before = state()
    assert differentiates(graph)
    with pytest.raises(UnsupportedOpError, match=r"differentiates inside \(torch.func\)"):
        capture_call(graph, (X,), {})
    assert state() == before


def test_vmap_alone_is_captured() -> None:
    graph = graph_of(lambda a: torch.func.vmap(lambda row: row * row.sum())(a), X)
    assert not differentiates(graph)
    assert not differentiates(torch.nn.Linear(2, 2))
    live = capture_call(graph, (X,), {})
    assert {"sum", "mul"} <= {op.kind for op in live.program.graph.ops}


def _chosen(a: torch.Tensor) -> torch.Tensor:
    chosen: torch.Tensor = torch.cond(a.sum() > 0, lambda b: b * 2.0, lambda b: b - 1.0, (a,))
    return chosen


def in_autocast(a: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return _chosen(a)


def in_inference_mode(a: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return _chosen(a)


def with_gradients(a: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        return _chosen(a)


def without_hooks(a: torch.Tensor) -> torch.Tensor:
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        return _chosen(a)


def with_one_attention(a: torch.Tensor) -> torch.Tensor:
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return _chosen(a)


@pytest.mark.parametrize(
    "function", [in_autocast, in_inference_mode, with_gradients, without_hooks, with_one_attention]
)
def test_a_graph_that_cant_be_followed_inside_a_mode_leaves_none_on(function: Callable[..., Any]) -> None:
    graph = graph_of(function, X)
    with torch.no_grad():
        before = state()
        with pytest.raises(UnsupportedOpError, match="It uses cond"):
            capture_call(graph, (X,), {})
        assert state() == before
