"""Two calls fit one deployment only if all is equal that a kernel was generated for."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.deploy.guarding import State
from engine.deploy.keys import keys_of, signature, unfollowed

X = torch.ones(2)


def test_which_arguments_are_one_tensor_is_part_of_a_signature() -> None:
    other = X.clone()
    once, twice = ([a, b] for a, b in ((X, other), (X, X)))
    assert signature(once, once, frozenset()) != signature(twice, twice, frozenset())
    assert signature(twice, twice, frozenset()) == signature([other, other], [other, other], frozenset())
    placed = [X, other[:1]]
    assert signature(once, once, frozenset({1})) == signature(placed, placed, frozenset({1}))


@pytest.mark.parametrize(("one", "other"), [({1: X}, {1.0: X}), ({1: X}, {True: X}), ({0.0: X}, {-0.0: X})])
@pytest.mark.parametrize("within", [lambda d: d, lambda d: ([d],), lambda d: {"a": d}])
def test_keys_count_by_their_bits(one: dict[object, object], other: dict[object, object], within: object) -> None:
    assert callable(within)
    assert list(keys_of(within(one))) == list(keys_of(within(dict(one))))
    assert list(keys_of(within(one))) != list(keys_of(within(other)))
    assert not list(keys_of({"a": [X, {"b": X}]}))


def test_what_code_asks_of_an_argument_that_a_capture_hides_is_left_to_eager() -> None:
    marked, none = X.clone(), frozenset[int]()
    marked.scale = 2.0  # type: ignore[attr-defined]
    asking = State((), names=frozenset({"scale", "Parameter", "is_grad_enabled"}), ids=frozenset({id(X)}))
    plain = State(())
    assert not unfollowed(plain, [X, marked, nn.Parameter(X)], none, True)
    assert "attribute" in unfollowed(asking, [marked], none, False)
    assert "parameter" in unfollowed(asking, [nn.Parameter(X)], none, False)
    assert "holds itself" in unfollowed(asking, [X], none, False)
    assert not unfollowed(asking, [X], frozenset({0}), False)
    assert "gradients are enabled" in unfollowed(asking, [], none, True)
