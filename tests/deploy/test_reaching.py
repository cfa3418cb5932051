"""Whatever way code reaches a tensor or a value, and however that changes: it is seen, and the call gives eager's."""

from __future__ import annotations

import builtins
import collections
import contextvars
import copy
import ctypes
import itertools
import logging
import math
import operator
import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.capture import parse_target
from engine.capture.binding import bind_target
from engine.deploy.guarding import Guard
from engine.deploy.kinds import typed
from engine.deploy.reaching import LARGEST
from tests.deploy.programs import printed_by
from tests.deploy.ways import CHANGES, UNREADABLE, VALUES_ONLY, WAYS, everyday, rest, the_tensor

LIMIT_S = 1500
"""Many captures, on a machine whose cores others use too."""
pytestmark = pytest.mark.timeout(LIMIT_S + 20)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """One process for all: each change is captured anew, and loading torch's compiler takes longer."""
    return printed_by("-m", "tests.deploy.reached", "everyday", limit_s=LIMIT_S)


@pytest.fixture(scope="module")
def found_besides() -> dict[str, Any]:
    """As `found`, of the changes that a way doesn't meet each day."""
    return printed_by("-m", "tests.deploy.reached", "rest", limit_s=LIMIT_S)


@pytest.mark.parametrize(("way", "change"), [(way, change) for way in WAYS for change in everyday(way)])
def test_a_call_after_a_change_gives_what_eager_gives(found: dict[str, Any], way: str, change: str) -> None:
    assert found["ways"][way]["first"]
    assert found["ways"][way]["right"][change]


@pytest.mark.slow
@pytest.mark.parametrize(("way", "change"), [(way, change) for way in WAYS for change in rest(way)])
def test_so_does_a_call_after_any_other_change(found_besides: dict[str, Any], way: str, change: str) -> None:
    assert found_besides["ways"][way]["first"]
    assert found_besides["ways"][way]["right"][change]


@pytest.mark.parametrize("way", WAYS)
def test_kernels_run_but_for_what_none_can_read(found: dict[str, Any], way: str) -> None:
    by_kernels_but_for_what_none_can_read(found["ways"][way], everyday(way))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_so_they_do_after_any_other_change(found_besides: dict[str, Any], way: str) -> None:
    by_kernels_but_for_what_none_can_read(found_besides["ways"][way], rest(way))


def by_kernels_but_for_what_none_can_read(one: dict[str, Any], changes: list[str]) -> None:
    unreadable = UNREADABLE in changes
    assert one["kernels"] >= len(set(changes) - set(VALUES_ONLY)) - 2 * unreadable
    assert len(one["said"]) == unreadable
    assert all("negates or conjugates" in said for said in one["said"])


VALUES = {"zeros": 2, "NaN": 1, "negative bit": 2, "literals": 1, "an array's memory": 1, "hidden": 1, "NumPy's": 3}


@pytest.mark.parametrize("what", VALUES)
def test_values_count_by_what_they_compute(found: dict[str, Any], what: str) -> None:
    assert found["values"][what]["right"]
    assert found["values"][what]["builds"] == VALUES[what]


def test_a_tensor_that_is_reached_out_of_sight_is_left_to_eager(found: dict[str, Any]) -> None:
    assert not found["values"]["literals"]["said"]
    (said,) = found["values"]["hidden"]["said"]
    assert "in a way that can't be watched" in said


READ = ("item", "float", "tolist", "alpha", "full", "a list", "dim", "a slice", "a buffer")


def test_a_number_that_code_makes_of_a_tensor_is_never_an_old_one(found: dict[str, Any]) -> None:
    for name, one in found["in Python"].items():
        assert all(one["right"]), name
    for name in READ:
        (said,) = found["in Python"][name]["said"]
        assert "reads the value of a tensor in Python" in said
    assert not found["in Python"]["one tensor twice"]["said"]
    assert "tensor that it holds itself" in found["in Python"]["a tensor it holds"]["said"][0]
    assert "tells parameters from tensors" in found["in Python"]["a parameter"]["said"][0]
    assert "_base" in found["in Python"]["a view"]["said"][0]


def test_gradients_and_inference_are_what_code_finds_them_to_be(found: dict[str, Any]) -> None:
    assert all(found["modes"]["right"])
    assert "doesn't train" in found["modes"]["raised"]


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


NUMPYS: list[tuple[np.generic, np.generic]] = [
    (np.int64(-1), np.int64(-2)),
    (np.int64(5), np.int64(6)),
    (np.int8(0), np.int64(0)),
    (np.uint16(1), np.uint16(2)),
    (np.bool_(True), np.bool_(False)),
    (np.float16(1.5), np.float16(2.5)),
    (np.float32(0.0), np.float32(-0.0)),
    (np.float64(1.0), np.float64("nan")),
    (np.longdouble(1.0), np.longdouble(2.0)),
    (np.complex64(1j), np.complex64(2j)),
    (np.complex128(1.0), np.complex128(1j)),
    (np.datetime64("2020-01-01"), np.datetime64("2020-01-01T00")),
    (np.timedelta64(1, "s"), np.timedelta64(1, "m")),
    (np.str_("a\u00e9"), np.str_("a\u00e8")),
    (np.bytes_(b"a"), np.bytes_(b"b")),
]


@pytest.mark.parametrize(("old", "new"), NUMPYS, ids=lambda value: repr(value))
def test_a_value_of_numpys_counts_by_its_bytes_and_its_type(old: np.generic, new: np.generic) -> None:
    held = [old]
    guard = Guard(lambda x: x if held[0] is None else x + 1)
    before = guard.state()
    assert not before.problem
    held[0] = copy.copy(old)
    assert guard.state() == before
    held[0] = new
    assert guard.state() != before
    assert (typed(old) == typed(copy.copy(old)), typed(old) == typed(new)) == (True, False)


class Numbered(np.float64):
    """A number of NumPy's with attributes of its own."""


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


class Made:
    def __init__(self) -> None:
        self.factor = FACTOR


class Allocated:
    def __new__(cls) -> Allocated:
        made = super().__new__(cls)
        made.factor = FACTOR  # type: ignore[attr-defined]
        return made


@dataclass
class Filled:
    factor: float = field(default_factory=lambda: FACTOR)


class Entered:
    def __init__(self) -> None:
        self.factor = FACTOR

    def __enter__(self) -> float:
        return self.factor

    def __exit__(self, *_: object) -> None:
        pass


class Shown:
    def __repr__(self) -> str:
        return str(FACTOR)


class OfClasses(type):
    @property
    def factor(cls) -> float:
        return FACTOR


class Classed(metaclass=OfClasses):
    pass


def entering(x: torch.Tensor) -> torch.Tensor:
    with Entered() as factor:
        return x * factor


def importing(x: torch.Tensor) -> torch.Tensor:
    from tests.deploy import test_reaching

    return x * test_reaching.FACTOR


def importing_a_name(x: torch.Tensor) -> torch.Tensor:
    from tests.deploy.test_reaching import FACTOR as found

    return x * found


MADE_BEFORE, SHOWN = Made(), Shown()
MADE: dict[str, Callable[[torch.Tensor], Any]] = {
    "__init__": lambda x: x * Made().factor,
    "__new__": lambda x: x * Allocated().factor,  # type: ignore[attr-defined]
    "default_factory": lambda x: x * Filled().factor,
    "a context": entering,
    "by its class": lambda x: x * type(MADE_BEFORE)().factor,
    "a text": lambda x: x * float(f"{SHOWN}"),
    "repr": lambda x: x * float(repr(SHOWN)),
    "a metaclass": lambda x: x * Classed.factor,
    "an import": importing,
    "a name that is imported": importing_a_name,
}


@pytest.mark.parametrize("what", MADE)
def test_code_that_runs_without_being_named_is_followed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(MADE[what])
    before = guard.state()
    assert not before.problem
    assert guard.state() is before
    monkeypatch.setattr(f"{__name__}.FACTOR", 3.0)
    assert guard.state() != before


def test_a_constructor_that_no_code_calls_doesnt_count(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made()
    guard = Guard(lambda x: x * made.factor)
    before = guard.state()
    monkeypatch.setattr(f"{__name__}.FACTOR", 3.0)
    assert guard.state() == before


def test_a_built_in_name_that_is_another_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(lambda x: x * max(1.0, 2.0))
    before = guard.state()
    monkeypatch.setattr(builtins, "max", min)
    assert guard.state() != before


def test_an_attribute_that_was_set_on_a_tensor_counts_if_code_names_it() -> None:
    w = torch.ones(4)
    guard = Guard(lambda x: x * w * getattr(w, "scale", 1.0))
    states = [guard.state()]
    w.scale = 2.0  # type: ignore[attr-defined]
    states.append(guard.state())
    w.scale = 3.0  # type: ignore[attr-defined]
    states.append(guard.state())
    w.other = 3.0  # type: ignore[attr-defined]
    assert guard.state() == states[-1]
    assert len(set(states)) == 3


@pytest.mark.parametrize("getter", [operator.attrgetter("value"), "{0.value}".format])
def test_an_attribute_that_a_getter_names_counts(getter: Callable[[Any], Any]) -> None:
    options = Options(2.0)
    guard = Guard(lambda x: x * float(getter(options)))
    before = guard.state()
    options.value = 3.0
    assert guard.state() != before


class Marked(np.ndarray):
    """An array with attributes of its own."""


LOGGER = logging.getLogger("reached")


def test_a_logger_counts_where_its_level_is_asked_for() -> None:
    assert not Guard(lambda x: (LOGGER.warning("slow"), x)[1]).state().problem
    assert "a Logger (LOGGER)" in Guard(lambda x: x * LOGGER.level).state().problem


UNWATCHABLE: dict[str, tuple[Any, str]] = {
    "a long list": ([1.0] * (LARGEST + 1), "a list of 4097 items"),
    "a large array": (np.zeros(LARGEST), "bytes"),
    "a counter": (itertools.count(), "a count (held)"),
    "a generator": ((i for i in range(3)), "a generator (held)"),
    "a random generator": (random.Random(0), "a Random (held)"),
    "NumPy's generator": (np.random.default_rng(0), "a Generator (held)"),
    "an event": (threading.Event(), "a Event (held)"),
    "a future": (Future(), "a Future (held)"),
    "memory of C's": (ctypes.c_float(2.0), "a c_float (held)"),
    "an array of its own class": (np.ones(2).view(Marked), "a Marked"),
    "a number of its own class": (Numbered(1.0), "a Numbered"),
    "a row of an array": (np.zeros(1, dtype=[("a", "f4")])[0], "a void"),
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


@pytest.mark.parametrize(
    "code",
    [
        "F.gelu(F.linear(torch.randn(8, 16), torch.randn(32, 16), torch.randn(32)))",
        "torch.nn.Linear(16, 32)(torch.randn(8, 16))",
        "(lambda layer, x: layer(x) + layer(2 * x))(torch.nn.Linear(16, 16), torch.randn(8, 16))",
    ],
)
def test_a_program_that_was_typed_is_reached_as_any_other(code: str) -> None:
    bound = bind_target(parse_target(code), "cpu")
    state = Guard(bound.function).state()
    assert not state.problem
    assert Guard(bound.function).state().marks == state.marks
