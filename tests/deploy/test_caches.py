"""Entries of functools' caches are seen, each by itself, bounded or not."""

from __future__ import annotations

import cProfile
import functools
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.capture.errors import FilledCacheError
from engine.deploy.caches import code_of, entries_of
from engine.deploy.guarding import Guard
from engine.deploy.signatures import Unsuitable, capture_unchanged


@pytest.mark.parametrize("size", [None, 3, 0])
@pytest.mark.parametrize("result", [lambda n: [n], lambda n: {n: n}, lambda n: {}])
def test_keys_and_results_are_what_it_keeps(size: int | None, result: Any) -> None:
    made = functools.lru_cache(maxsize=size)(result)
    assert entries_of(made) == []
    results = [made(n) for n in (1001, 1002)]
    kept = entries_of(made)
    assert [any(one is entry for entry in kept) for one in results] == [size != 0] * 2
    assert len(kept) == (4 if size != 0 else 0)
    made.cache_clear()
    assert entries_of(made) == []
    assert code_of(made) is result.__code__


def test_an_entry_that_comes_or_goes_gives_another_state_and_none_the_same() -> None:
    factor = 2.0

    @functools.lru_cache(maxsize=1)
    def scale(n: int) -> torch.Tensor:
        return torch.full((4,), n * factor)

    guard = Guard(lambda x: x * scale(1))
    states = [guard.state()]
    kept = scale(1)
    states.append(guard.state())
    assert any(one is kept for one in states[-1].tensors)
    scale(1)
    assert guard.state() is states[-1]
    scale(2)
    states.append(guard.state())
    scale(1)
    states.append(guard.state())
    assert len(set(states)) == 4


def test_a_cache_of_what_is_no_plain_function_is_said() -> None:
    made = functools.cache(functools.partial(max, 1))
    assert code_of(made) is None
    assert "a cache of functools' (made) of what is no plain function" in Guard(lambda x: x * made(2)).state().problem


def test_saving_and_restoring_leaves_entries_alone() -> None:
    @functools.cache
    def scale(n: int) -> list[int]:
        return [n]

    kept = scale(1)

    def function(x: torch.Tensor) -> torch.Tensor:
        return x * scale(1)[0] * scale(2)[0]

    saved = Guard(function).saved()
    assert saved.caches == [scale]
    function(torch.ones(1))
    kept.append(3)
    assert saved.restore() == ["scale"]
    assert scale(1) is kept
    assert kept == [1]


def test_a_cache_of_an_installed_package_is_cleared_and_none_of_those_that_nothing_may_come_into() -> None:
    package = types.ModuleType("a_package")
    package.__file__ = str(Path(torch.__file__).parent / "a_package.py")
    code = "import functools, torch\n@functools.cache\ndef scale(n):\n    return torch.full((4,), float(n))\n"
    exec(compile(code, package.__file__, "exec"), package.__dict__)

    def function(x: torch.Tensor) -> torch.Tensor:
        return x * package.scale(2)

    guard = Guard(function)
    saved = guard.saved()
    assert saved.caches == []
    function(torch.ones(4))
    saved.restore()
    assert package.scale.cache_info().currsize == 0
    live, _ = capture_unchanged(function, (torch.ones(4),), {}, frozenset(), guard.state())
    assert len(live.program.graph.inputs) == 1
    assert package.scale.cache_info().currsize == 0


def test_where_a_profiler_hides_what_runs_nothing_comes_into_a_cache() -> None:
    @functools.cache
    def scale(n: int) -> torch.Tensor:
        return torch.full((4,), float(n))

    def function(x: torch.Tensor) -> torch.Tensor:
        return x * scale(2)

    with cProfile.Profile(), pytest.raises((Unsuitable, FilledCacheError)):
        capture_unchanged(function, (torch.ones(4),), {}, frozenset(), Guard(function).state())
    assert scale.cache_info().currsize == 0


def test_where_nothing_is_stopped_no_entry_without_values_stays() -> None:
    @functools.cache
    def scale(n: int) -> torch.Tensor:
        return torch.full((4,), float(n))

    def function(x: torch.Tensor) -> torch.Tensor:
        return x * scale(2)

    live, _ = capture_unchanged(function, (torch.ones(4),), {}, frozenset(), None)
    assert len(live.program.graph.inputs) == 1
    assert scale.cache_info().currsize == 0
