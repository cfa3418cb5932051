"""Whatever way code reaches a tensor or a value, and however that changes: it is seen, and the call gives eager's."""

from __future__ import annotations

import collections
import contextvars
import copy
import itertools
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.deploy.guarding import Guard
from engine.deploy.kinds import typed
from engine.deploy.reaching import LARGEST
from tests.deploy.ways import CHANGES, VALUES_ONLY, WAYS, the_tensor

ROOT = Path(__file__).parents[2]
LIMIT_S = 280
pytestmark = pytest.mark.timeout(LIMIT_S + 20)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """One process for all: each change is captured anew, and loading torch's compiler takes longer."""
    environment = {**os.environ, "XDG_DATA_HOME": str(ROOT / "no such folder")}
    command = [sys.executable, "-m", "tests.deploy.reached"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", WAYS)
def test_a_call_after_a_change_gives_what_eager_gives(found: dict[str, Any], way: str, change: str) -> None:
    assert found["ways"][way]["first"]
    assert found["ways"][way]["right"][change]


@pytest.mark.parametrize("way", WAYS)
def test_kernels_run_but_for_what_none_can_read(found: dict[str, Any], way: str) -> None:
    one = found["ways"][way]
    assert one["kernels"] >= len(CHANGES) - len(VALUES_ONLY) - 2
    assert len(one["said"]) == 1
    assert "negates or conjugates" in one["said"][0]


VALUES = {"zeros": 2, "NaN": 1, "negative bit": 2, "literals": 1, "an array's memory": 1, "hidden": 1}


@pytest.mark.parametrize("what", VALUES)
def test_values_count_by_what_they_compute(found: dict[str, Any], what: str) -> None:
    assert found["values"][what]["right"]
    assert found["values"][what]["builds"] == VALUES[what]


def test_a_tensor_that_is_reached_out_of_sight_is_left_to_eager(found: dict[str, Any]) -> None:
    assert not found["values"]["literals"]["said"]
    (said,) = found["values"]["hidden"]["said"]
    assert "in a way that can't be watched" in said


def test_a_weight_that_wants_gradients_is_refused_in_a_function_too(found: dict[str, Any]) -> None:
    assert "doesn't train" in found["training"]


@pytest.mark.parametrize("way", WAYS)
def test_a_change_gives_another_state_and_none_the_same(way: str) -> None:
    w = torch.randn(4, 4)
    function, put = WAYS[way](w)
    w, guard = the_tensor(function, w), Guard(function)
    with torch.no_grad():
        for change, act in CHANGES.items():
            before = guard.state()
            assert guard.state() is before
            act(w, put)
            assert (guard.state() == before) is (change in VALUES_ONLY), change


class Options:
    """An object of a class that nobody knows."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.uses = 0


HOLDERS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "list": lambda v: ([v], 0),
    "dictionary": lambda v: ({"k": v}, "k"),
    "deque": lambda v: (collections.deque([v]), 0),
    "Counter": lambda v: (collections.Counter(k=v), "k"),
    "defaultdict": lambda v: (collections.defaultdict(int, k=v), "k"),
    "OrderedDict": lambda v: (collections.OrderedDict(k=v), "k"),
    "a long list": lambda v: ([v] * 3000, 2999),
    "an array": lambda v: (np.full(3, v), 1),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize(("old", "new"), [(0.0, -0.0), (1.0, 2.0), (1.0, math.nan)])
def test_an_item_of_a_container_counts_by_its_bits(holder: str, old: float, new: float) -> None:
    held, key = HOLDERS[holder](old)
    guard = Guard(lambda x: x * held[key])
    before = guard.state()
    held[key] = copy.copy(old)
    assert guard.state() == before
    held[key] = new
    assert guard.state() != before


def test_an_attribute_that_no_code_names_doesnt_count() -> None:
    options = Options(2.0)
    guard = Guard(lambda x: x * options.value)
    before = guard.state()
    options.uses += 1
    assert guard.state() == before
    options.value = 3.0
    assert guard.state() != before


def test_a_method_that_a_method_names_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(Calling())
    before = guard.state()
    monkeypatch.setattr(f"{__name__}.FACTOR", 3.0)
    assert guard.state() != before


FACTOR = 2.0


class Calling:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)

    def inner(self, x: torch.Tensor) -> torch.Tensor:
        return x * FACTOR


UNWATCHABLE: dict[str, tuple[Any, str]] = {
    "a long list": ([1.0] * (LARGEST + 1), "a list of 4097 items"),
    "a large array": (np.zeros(LARGEST), "bytes"),
    "a counter": (itertools.count(), "a count (held)"),
    "a generator": ((i for i in range(3)), "a generator (held)"),
    "a context variable": (contextvars.ContextVar("held"), "a ContextVar (held)"),
    "a sparse tensor": (torch.eye(3).to_sparse(), "of the kind sparse_coo (held)"),
    "a tensor of its own class": (torch.eye(3).as_subclass(type("Own", (torch.Tensor,), {})), "of the kind Own (held)"),
}


@pytest.mark.parametrize("what", UNWATCHABLE)
def test_what_cant_be_watched_is_said(what: str) -> None:
    held, words = UNWATCHABLE[what]
    assert words in Guard(lambda x: x if held is None else x + 1).state().problem
    assert not Guard(lambda x: x + 1).state().problem


@given(st.floats(), st.floats())
def test_numbers_are_equal_by_their_bits(a: float, b: float) -> None:
    same = np.float64(a).tobytes() == np.float64(b).tobytes()
    assert (typed(a) == typed(b)) is same
    assert typed(a) != typed(complex(a)) != typed(complex(b, 1.0))
    assert (typed(slice(a)) == typed(slice(b))) is same
