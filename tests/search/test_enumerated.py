from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.search import EnumeratedSpace, Path, Search
from engine.vocabulary import KnobValue
from tests.search.toys import drive, hashed, knobs_of, no_opinion

leaf = st.fixed_dictionaries(
    {
        "NUM_WARPS": st.sampled_from([1, 2, 4, 8]),
        "BLOCK_M": st.sampled_from([16, 32, 64]),
        "LOADS": st.sampled_from(["pointer", "descriptor"]),
        "PERSISTENT": st.just(False),
        "house": st.sampled_from(["a", "b"]),
    }
)
levels = st.sampled_from([None, [["NUM_WARPS"]], [["house", "LOADS"], ["BLOCK_M"]], [["BLOCK_M", "NUM_WARPS"]]])


def ends(space: EnumeratedSpace, path: Path = ()) -> list[dict[str, KnobValue]]:
    fork = space.fork(path)
    if fork is None:
        return [knobs_of(path)]
    return [end for option in fork.options for end in ends(space, (*path, option))]


@given(st.lists(leaf, max_size=30), levels)
def test_the_paths_are_exactly_the_leaves(leaves: list[dict[str, KnobValue]], asked: list[list[str]] | None) -> None:
    found = ends(EnumeratedSpace(leaves, asked))
    wanted = {repr(sorted(item.items())) for item in leaves}
    assert {repr(sorted(item.items())) for item in found} == wanted
    assert len(found) == len(wanted) == len(EnumeratedSpace(leaves, asked))


@given(st.lists(leaf, min_size=2, max_size=30), levels, st.randoms(use_true_random=False))
def test_neither_the_order_of_leaves_nor_of_questions_matters(
    leaves: list[dict[str, KnobValue]], asked: list[list[str]] | None, random: object
) -> None:
    shuffled = leaves[:]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = EnumeratedSpace(leaves, asked), EnumeratedSpace(shuffled, asked)
    paths = [()]
    while paths:
        path = paths.pop()
        fork = one.fork(path)
        assert fork == EnumeratedSpace(shuffled, asked).fork(path) == other.fork(path)
        if fork is not None:
            assert len(fork.options) > 1 or not path
            paths += [(*path, option) for option in fork.options]


def test_knobs_on_which_all_agree_ask_nothing() -> None:
    leaves = [{"BLOCK_M": m, "BLOCK_N": 64, "NUM_WARPS": w} for m, w in ((16, 1), (16, 2), (32, 4))]
    space = EnumeratedSpace(leaves)
    fork = space.fork(())
    assert fork is not None
    assert [str(option) for option in fork.options] == [
        "BLOCK_M=16 BLOCK_N=64",
        "BLOCK_M=32 BLOCK_N=64 NUM_WARPS=4",
    ]
    below = space.fork((fork.options[0],))
    assert below is not None
    assert [str(option) for option in below.options] == ["NUM_WARPS=1", "NUM_WARPS=2"]
    assert space.fork((fork.options[1],)) is None


def test_knobs_are_asked_in_canonical_order() -> None:
    leaves = [{"NUM_WARPS": w, "zebra": z, "BLOCK_M": m} for w in (1, 2) for z in (0, 1) for m in (16, 32)]
    space = EnumeratedSpace(leaves)
    names, path = [], ()
    while (fork := space.fork(path)) is not None:
        names.append(fork.name)
        path = (*path, fork.options[0])
    assert names == ["BLOCK_M", "NUM_WARPS", "zebra"]


def test_a_single_leaf_is_one_option_and_none_is_a_dead_end() -> None:
    space = EnumeratedSpace([{"BLOCK_M": 16, "NUM_WARPS": 4}] * 2)
    fork = space.fork(())
    assert fork is not None
    assert len(fork.options) == 1
    assert space.fork((fork.options[0],)) is None
    empty = EnumeratedSpace([]).fork(())
    assert empty is not None
    assert empty.options == ()
    assert EnumeratedSpace([{}]).fork(()) is None


def test_a_knob_on_two_levels_and_an_unknown_path_are_refused() -> None:
    with pytest.raises(ValueError, match="one level only: BLOCK_M"):
        EnumeratedSpace([{"BLOCK_M": 16}], [["BLOCK_M"], ["BLOCK_M"]])
    space = EnumeratedSpace([{"BLOCK_M": 16}, {"BLOCK_M": 32}])
    other = EnumeratedSpace([{"BLOCK_M": 64}, {"BLOCK_M": 128}]).fork(())
    assert other is not None
    with pytest.raises(ValueError, match="no recorded assignment has BLOCK_M=64"):
        space.fork((other.options[0],))


def test_a_search_finds_the_best_recorded_point() -> None:
    leaves = [{"BLOCK_M": m, "NUM_WARPS": w} for m in (16, 32, 64, 128) for w in (1, 2, 4, 8) if m >= 16 * w]
    search = Search(EnumeratedSpace(leaves), no_opinion)
    asked = drive(search, hashed, window=4)
    assert len(asked) == len(leaves)
    assert search.best is not None
    assert search.best.reward == max(hashed(item) for item in leaves)
