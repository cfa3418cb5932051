"""What a trial changed is put back by the container's own kind, whatever a subclass makes of its methods."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch

from engine.deploy.guarding import Guard
from engine.deploy.restoring import Holder, Saved
from tests.deploy.changing import CHANGING


class Odd(dict[Any, Any]):
    """Methods of the usual names with other meanings, as registries of libraries have them."""

    def get(self, key: Any) -> Any:  # type: ignore[override]
        return super().get(str(key)) or {}

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(str(key), value)

    def __delitem__(self, key: Any) -> None:
        raise KeyError("entries stay")

    def items(self) -> Any:
        return ()


@pytest.mark.parametrize("kind", [dict, Odd])
def test_a_dictionary_is_put_back(kind: type[dict[Any, Any]]) -> None:
    held = kind()
    for key, value in ((1, "one"), ("two", 2)):
        dict.__setitem__(held, key, value)
    saved = Saved([Holder("held", held, dict(dict.items(held)))])
    assert saved.restore() == []
    dict.__setitem__(held, 1, "changed")
    dict.__setitem__(held, "new", 3)
    dict.__delitem__(held, "two")
    assert sorted(saved.restore()) == ["1", "new", "two"]
    assert dict(dict.items(held)) == {1: "one", "two": 2}
    assert saved.restore() == []


@pytest.mark.parametrize("what", CHANGING)
def test_what_is_watched_is_held(what: str) -> None:
    function, held = CHANGING[what]()
    guard, before = Guard(function), held()
    states = [guard.state()]
    saved = guard.saved()
    assert [float(function(torch.ones(1))) for _ in range(3)] == [1.0, 2.0, 3.0]
    states.append(guard.state())
    assert len(saved.restore()) >= 1
    assert held() == before
    states.append(guard.state())
    assert states[0] != states[1]
    assert states[0] == states[2]
    assert saved.restore() == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_arrays_and_streams_are_put_back_whatever_became_of_them() -> None:
    whole, closed, sized = np.arange(6.0), io.StringIO("kept"), bytearray(b"abc")
    part, bits = whole[::2], np.array([1.0])
    saved = Guard(lambda x: (whole, closed, sized, part, bits)).saved()
    whole.shape, part[:], sized[:] = (2, 3), 9.0, b"longer"
    bits.dtype, whole.flags.writeable = np.int64, False
    closed.write("other, and longer")
    assert set(saved.restore()) == {"whole", "closed", "sized", "bits"}
    assert (whole.tolist(), part.tolist(), sized) == ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 2.0, 4.0], b"abc")
    assert (closed.getvalue(), closed.tell(), bits.dtype) == ("kept", 0, np.float64)
    closed.close()
    saved = Guard(lambda x: closed).saved()
    assert saved.restore() == []


def test_memory_that_is_only_read_is_put_back_with_what_owns_it() -> None:
    owner = bytearray(b"abc")
    view = memoryview(owner).toreadonly()
    saved = Guard(lambda x: (view, owner)).saved()
    owner[:] = b"xyz"
    assert "owner" in saved.restore()
    assert (bytes(view), owner) == (b"abc", b"abc")


def test_a_read_only_array_that_nothing_changes_is_left_alone() -> None:
    table = np.broadcast_to(np.ones(1), (3,))
    assert Guard(lambda x: table).saved().restore() == []
    assert not Guard(lambda x: table).state().problem
