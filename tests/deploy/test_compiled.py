"""What engine.compile gives back is, for all that walks, saves, copies or changes it, what it was made of."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

import engine
from engine.deploy.backend import TrainingError
from engine.deploy.guarding import Guard
from engine.store import Store


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[..., Any]:
    """engine.compile with an empty database. Here, without a GPU, its calls run in eager with a warning."""
    Store.open(tmp_path / "empty.db").close()
    return partial(engine.compile, db=tmp_path / "empty.db")


@pytest.fixture(autouse=True)
def _without_warnings() -> Any:
    with warnings.catch_warnings(), torch.no_grad():
        warnings.filterwarnings("ignore", "emmy runs")
        yield


def two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 8))


class Scaled(nn.Module):
    """It keeps a number in its state_dict, and does another thing in training."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight * (self.scale if self.training else 2.0)

    def get_extra_state(self) -> float:
        return self.scale

    def set_extra_state(self, state: float) -> None:
        self.scale = state


class Counted(Scaled):
    """It counts how often it is asked for its parameters."""

    asked = 0

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        Counted.asked += 1
        return super().parameters(recurse)


def test_parameters_are_asked_whether_they_train_where_one_may_have_changed(compiled: Callable[..., Any]) -> None:
    module, x = Counted().requires_grad_(False), torch.randn(2, 8)
    call = compiled(module)
    Counted.asked = 0
    with torch.enable_grad():
        for _ in range(4):
            assert torch.equal(call(x), module(x))
        assert Counted.asked == 1
        module.weight.requires_grad_(True)
        for _ in range(2):
            with pytest.raises(TrainingError, match="doesn't train"):
                call(x)
        module.weight.requires_grad_(False)
        assert torch.equal(call(x), module(x))
        module.weight = nn.Parameter(torch.zeros(8))
        with pytest.raises(TrainingError, match="doesn't train"):
            call(x)
    assert torch.equal(call(x), module(x))


def test_a_parent_walks_the_compiled_module_as_the_module(compiled: Callable[..., Any]) -> None:
    module = two_layers()
    parent, plain = nn.Sequential(compiled(module)), nn.Sequential(module)
    for walk in ("named_modules", "named_parameters", "named_buffers"):
        assert [name for name, _ in getattr(parent, walk)()] == [name for name, _ in getattr(plain, walk)()], walk
    assert all(a is b for a, b in zip(parent.parameters(), plain.parameters(), strict=True))
    assert [name for name, _ in parent[0].named_modules()] == [name for name, _ in module.named_modules()]
    parent.requires_grad_(False)
    assert not any(weight.requires_grad for weight in module.parameters())
    parent.eval()
    assert not module[1].training
    parent.double()
    assert module[0].weight.dtype is torch.float64
    seen: list[nn.Module] = []
    parent.apply(seen.append)
    assert module in seen


@pytest.mark.parametrize("assign", [False, True])
def test_a_parent_saves_and_loads_it_as_the_module(compiled: Callable[..., Any], assign: bool) -> None:
    module = two_layers()
    parent, plain = nn.Sequential(compiled(module)), nn.Sequential(module)
    saved = parent.state_dict()
    assert list(saved) == list(plain.state_dict())
    found = parent.load_state_dict({name: torch.full_like(value, 3) for name, value in saved.items()}, assign=assign)
    assert (found.missing_keys, found.unexpected_keys) == ([], [])
    assert {float(value.min()) for value in module.state_dict().values()} == {3.0}
    x = torch.randn(4, 8)
    assert torch.equal(parent.eval()(x), plain(x))


def test_extra_state_and_the_hooks_of_loading_are_the_modules(compiled: Callable[..., Any]) -> None:
    module, loaded = Scaled(), []
    module.register_load_state_dict_post_hook(lambda *_: loaded.append("module"))
    parent = nn.Sequential(compiled(module))
    saved = parent.state_dict()
    module.scale = 5.0
    parent.load_state_dict(saved)
    assert (module.scale, loaded) == (1.0, ["module"])


def test_the_mode_is_the_modules_both_ways(compiled: Callable[..., Any]) -> None:
    module = Scaled()
    made = compiled(module)
    made.training = False
    assert not module.training
    assert float(made(torch.ones(8))[0]) == 2.0
    module.train()
    assert made.training


def test_what_is_registered_or_deleted_is_the_modules(compiled: Callable[..., Any]) -> None:
    module = nn.Linear(8, 8)
    made = compiled(module)
    made.register_buffer("table", torch.ones(2))
    made.register_parameter("factor", nn.Parameter(torch.ones(2)))
    made.add_module("after", nn.ReLU())
    assert made.table is module.table
    assert made.factor is module.get_parameter("factor")
    assert made.after is module.get_submodule("after")
    assert {"table", "factor"} <= set(made.state_dict())
    for name in ("table", "factor", "after"):
        delattr(made, name)
        assert not hasattr(module, name)
    with pytest.raises(AttributeError):
        del made.table


def test_a_container_stays_one_and_nothing_else_becomes_one(compiled: Callable[..., Any]) -> None:
    module = two_layers()
    made = compiled(module)
    assert (len(made), made[0], list(made), module[1] in made) == (3, module[0], list(module), True)
    assert isinstance(made[:2], nn.Sequential)
    made[1] = nn.ReLU()
    assert isinstance(module[1], nn.ReLU)
    single = compiled(nn.Linear(8, 8))
    assert single
    for ask in (len, iter, lambda one: one[0]):
        with pytest.raises(TypeError):
            ask(single)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_a_copy_keeps_the_hooks_and_is_apart(compiled: Callable[..., Any], how: Callable[[Any], Any]) -> None:
    made, x = compiled(Scaled()), torch.ones(8)
    made.register_forward_hook(lambda module, given, result: result * 100)
    made.register_forward_pre_hook(lambda module, given: (given[0] * 2,))
    other = how(made)
    assert torch.equal(other(x), torch.full((8,), 200.0))
    assert other.original is not made.original
    other.register_forward_hook(lambda module, given, result: result * 0)
    assert torch.equal(made(x), torch.full((8,), 200.0))


def test_a_later_hook_of_a_compiled_module_is_seen_by_what_calls_it(compiled: Callable[..., Any]) -> None:
    made = compiled(Scaled())
    guard = Guard(lambda x: made(x) + 1)
    before = guard.state()
    assert guard.state() == before
    made.register_forward_hook(lambda module, given, result: result * 100)
    assert guard.state() != before


def test_a_hook_of_every_module_runs_once(compiled: Callable[..., Any]) -> None:
    made, x = compiled(Scaled()), torch.ones(8)
    handle = register_module_forward_hook(lambda module, given, result: result * 3)
    try:
        assert torch.equal(made(x), torch.full((8,), 3.0))
    finally:
        handle.remove()
    assert torch.equal(made(x), x)


def test_a_scripted_module_runs_in_eager_and_it_is_said(compiled: Callable[..., Any]) -> None:
    x = torch.randn(4, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(nn.Linear(8, 8))
    for function in (scripted, lambda given: scripted(given)):
        with pytest.warns(UserWarning, match=r"in eager: it reaches a \w*ScriptModule"):
            made = compiled(function, (x,))
        assert torch.equal(made(x), scripted(x))


def test_a_function_keeps_its_name_its_text_and_its_signature(compiled: Callable[..., Any]) -> None:
    def scaled(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
        """A text."""
        return x * by

    made = compiled(scaled)
    assert (made.__name__, made.__doc__) == ("scaled", "A text.")
    assert inspect.signature(made) == inspect.signature(scaled)
    assert copy.deepcopy(made) is copy.copy(made) is made
    assert torch.equal(made(torch.ones(2), by=3.0), torch.full((2,), 3.0))


def test_a_function_of_a_class_is_a_method(compiled: Callable[..., Any]) -> None:
    class Holder:
        factor = 3.0

        @compiled
        def scaled(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor

    assert torch.equal(Holder().scaled(torch.ones(2)), torch.full((2,), 3.0))


@pytest.mark.parametrize("function", [Scaled(), lambda x: x * 2], ids=["module", "function"])
def test_pickling_is_refused_in_one_sentence(compiled: Callable[..., Any], function: Any) -> None:
    with pytest.raises(pickle.PicklingError, match=r"^what engine.compile made of .* call engine.compile where"):
        pickle.dumps(compiled(function))
