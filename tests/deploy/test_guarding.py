"""What a call depends on besides its arguments: seen when it changes, and put back when the call was tried out."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from engine.deploy.guarding import Guard, ambient

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


def test_autocast_and_its_dtype_are_ambient() -> None:
    outside = ambient()
    with torch.autocast("cpu", torch.bfloat16):
        inside = ambient()
        with torch.autocast("cpu", torch.float16):
            assert len({outside, inside, ambient()}) == 3
    assert ambient() == outside
