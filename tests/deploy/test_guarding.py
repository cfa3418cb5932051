"""What a call depends on besides its arguments: seen when it changes, and put back when the call was tried out."""

from __future__ import annotations

import collections
import copy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.fx.experimental.proxy_tensor
from torch import nn
from torch.autograd import forward_ad
from torch.utils.flop_counter import FlopCounterMode

import engine
from engine.deploy.guarding import Guard, ambient, is_transformed, unsuitable
from tests.deploy.hearing import heard

FACTOR = 2.0


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.s, self.flag, self.sizes = 2.0, True, [1, 2]
        self.options = SimpleNamespace(depth=3)
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * self.s * FACTOR


def _exchanged(module: Scaled) -> None:
    module.inner[0] = nn.Linear(4, 4)


CHANGES: dict[str, Callable[[Scaled], Any]] = {
    "a module": _exchanged,
    "a hook": lambda m: m.inner[0].register_forward_hook(lambda *_: None),
    "a number": lambda m: setattr(m, "s", 9.0),
    "a flag": lambda m: setattr(m, "flag", False),
    "an item": lambda m: m.sizes.append(3),
    "a name": lambda m: setattr(m.options, "depth", 4),
    "a mode": lambda m: m.inner.eval(),
    "a class": lambda m: setattr(m.inner[1], "__class__", nn.GELU),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_a_module_gives_another_state(what: str) -> None:
    module = Scaled()
    guard = Guard(module)
    before = guard.state()
    assert guard.state() == before
    CHANGES[what](module)
    assert guard.state() != before


def test_a_removed_hook_gives_the_state_before() -> None:
    module = Scaled()
    guard = Guard(module)
    before = guard.state()
    hook = module.register_forward_hook(lambda *_: None)
    assert guard.state() != before
    hook.remove()
    assert guard.state() == before
    assert hash(guard.state()) == hash(before)


def test_globals_that_a_forward_names_count(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(Scaled())
    before = guard.state()
    monkeypatch.setattr(f"{__name__}.FACTOR", 3.0)
    assert guard.state() != before


def test_closures_and_what_they_hold_count() -> None:
    factor, module = 2.0, nn.Linear(4, 4)

    def function(x: torch.Tensor) -> torch.Tensor:
        return module(x) * factor

    guard = Guard(function)
    states = [guard.state()]
    factor = 3.0
    states.append(guard.state())
    module.weight = nn.Parameter(torch.zeros(4, 4))
    states.append(guard.state())
    module = nn.Linear(4, 4)
    states.append(guard.state())
    assert len(set(states)) == 4


def test_what_a_function_changed_is_put_back_and_named() -> None:
    module = Scaled()
    kept = copy.deepcopy(module.__dict__["sizes"]), module.seen
    saved = Guard(module).saved()
    module.s, module.new = 5.0, 1
    module.sizes.append(7)
    module.options.depth = 8
    module.seen.add_(1.0)
    module.register_buffer("late", torch.zeros(1))
    assert {"s", "new", "sizes", "depth", "seen", "late"} <= set(saved.restore())
    assert (module.s, module.sizes, module.options.depth) == (2.0, kept[0], 3)
    assert not hasattr(module, "new")
    assert module.seen is kept[1]
    assert torch.equal(module.seen, torch.zeros(4))
    assert Guard(module).saved().restore() == []


class Slots:
    __slots__ = ("count",)
    total = 0


def test_slots_classes_and_deques_are_put_back_too() -> None:
    slots, recent = Slots(), collections.deque([1], maxlen=3)
    slots.count = 1

    def function(x: torch.Tensor) -> torch.Tensor:
        slots.count += 1
        Slots.total += 1
        recent.append(2)
        return x

    saved = Guard(function).saved()
    function(torch.ones(4))
    assert {"count", "total", "recent"} <= set(saved.restore())
    assert (slots.count, Slots.total, list(recent)) == (1, 0, [1])


def test_autocast_and_its_dtype_are_ambient() -> None:
    outside = ambient()
    with torch.autocast("cpu", torch.bfloat16):
        inside = ambient()
        with torch.autocast("cpu", torch.float16):
            assert len({outside, inside, ambient()}) == 3
    assert ambient() == outside


def _inside(transform: Callable[[Callable[[torch.Tensor], torch.Tensor], torch.Tensor], Any]) -> bool:
    seen: list[bool] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        seen.append(is_transformed())
        return x * 2.0

    transform(function, torch.ones(3))
    return all(seen) and bool(seen)


def _dual(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> None:
    with forward_ad.dual_level():
        function(forward_ad.make_dual(x, x))


def _with_mode(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> None:
    with FlopCounterMode(display=False):
        function(x)


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "vmap": lambda f, x: torch.func.vmap(f)(x),
    "jvp": lambda f, x: torch.func.jvp(f, (x,), (x,)),
    "grad": lambda f, x: torch.func.grad(lambda t: f(t).sum())(x),
    "forward mode": _dual,
    "trace": lambda f, x: torch.jit.trace(f, (x,), check_trace=False),
    "mode": _with_mode,
    "export": lambda f, x: torch.fx.experimental.proxy_tensor.make_fx(f)(x),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_transform_of_torchs_is_noticed(transform: str) -> None:
    assert _inside(TRANSFORMS[transform])
    assert not _inside(lambda f, x: f(x))
    with torch.device("cpu"):
        assert not _inside(lambda f, x: f(x))


class Twice(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        done = super().__torch_function__(func, types, args, kwargs)
        return done.as_subclass(torch.Tensor) * 2.0 if func is torch.Tensor.mul else done


ODD: dict[str, tuple[torch.Tensor, str]] = {
    "own class": (torch.ones(2).as_subclass(Twice), "Twice"),
    "COO": (torch.eye(2).to_sparse(), "sparse_coo"),
    "CSR": (torch.eye(2).to_sparse_csr(), "sparse_csr"),
    "nested": (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested"),
}


@pytest.mark.parametrize("what", ODD)
def test_a_tensor_that_no_kernel_takes_runs_in_eager_with_one_warning(what: str) -> None:
    tensor, word = ODD[what]
    assert word in unsuitable([torch.ones(2), tensor])
    assert unsuitable([torch.ones(2), nn.Parameter(torch.ones(2))]) == ""
    with heard() as sentences:
        call = engine.compile(lambda x: x * 2.0, (tensor,))
        results = [call(tensor) for _ in range(2)]
    (said,) = sentences
    assert f"in eager: a tensor among its arguments is of the kind {word}" in said
    assert all(type(result) is type(tensor * 2.0) and result.layout == tensor.layout for result in results)


def test_what_a_compiled_function_keeps_of_itself_is_no_state_of_one_that_calls_it() -> None:
    inner = engine.compile(lambda x: x * FACTOR)
    guard = Guard(lambda x: inner(x) + 1.0)
    before = guard.state()
    inner.call.builds += 1
    assert guard.state() == before


class Closed:
    """Knows its own names alone."""

    def __getattribute__(self, name: str) -> float:
        return {"factor": 2.0}[name]


CLOSED = Closed()


def test_what_an_object_raises_when_it_is_looked_at_is_said_and_eager_runs() -> None:
    def holding(x: torch.Tensor) -> torch.Tensor:
        return x * CLOSED.factor

    x = torch.ones(4)
    calls = {holding: (x,), lambda x, held: x * held.factor: (x, CLOSED)}
    for function, words in zip(calls, ("an object that it reaches", "an argument"), strict=True):
        compiled = engine.compile(function)
        with (
            torch.no_grad(),
            pytest.warns(UserWarning, match=f"{words} can't be looked at: its own code raised") as said,
        ):
            results = [compiled(*calls[function]) for _ in range(3)]
        assert all(torch.equal(result, x * 2.0) for result in results)
        assert [Path(warning.filename) for warning in said] == [Path(__file__)]
