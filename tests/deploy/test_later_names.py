"""What isn't there at the first call is seen when it comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from engine.deploy.guarding import Guard
from tests.deploy.later import LATER, taken_away
from tests.deploy.programs import printed_by

LIMIT_S = 600
"""Many captures, on a machine whose cores others use too."""
pytestmark = pytest.mark.timeout(LIMIT_S + 20)


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    yield
    taken_away()


@pytest.mark.parametrize("what", LATER)
def test_a_name_that_comes_later_gives_another_state(what: str) -> None:
    function, put = LATER[what]()
    guard, x = Guard(function), torch.ones(4)
    with torch.no_grad():
        before, result = guard.state(), function(x)
        assert not before.problem
        assert guard.state() is before
        put()
        assert not torch.equal(function(x), result)
    after = guard.state()
    assert after != before
    assert guard.state() is after


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """One process for all: loading torch's compiler takes longer."""
    return printed_by("-m", "tests.deploy.came_later", limit_s=LIMIT_S)


@pytest.mark.parametrize("what", LATER)
def test_a_call_after_it_came_gives_what_eager_gives(found: dict[str, Any], what: str) -> None:
    assert all(found["ways"][what]["right"])
    assert not found["ways"][what]["said"]


def test_a_name_that_a_trial_puts_somewhere_is_taken_away_and_the_call_counts_once(found: dict[str, Any]) -> None:
    for one in found["trials"].values():
        assert one["clean"]
        assert one["results"] == [1.0, 2.0, 3.0]
        assert "changes what it holds itself" in one["said"][0]


@pytest.mark.parametrize("by", ["engine", "torch"])
def test_a_version_and_an_op_of_python_code_are_left_to_eager(found: dict[str, Any], by: str) -> None:
    one = found["frozen"][by]
    assert all(one["version"])
    assert all(one["op"])
    version, op = one["said"]
    assert "It asks a tensor for its _version" in version
    assert "It calls the op came_later::scaled, whose Python code can't be followed" in op


@pytest.mark.parametrize("by", ["engine", "torch"])
def test_outputs_are_one_object_where_eagers_are(found: dict[str, Any], by: str) -> None:
    assert found["outputs"][by] == found["outputs"]["eager"]


def test_an_argument_and_a_view_of_it_are_returned_as_such_by_graphs_that_do_the_same(found: dict[str, Any]) -> None:
    assert found["equal"] == [True, False]
