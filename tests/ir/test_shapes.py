from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir import GraphError
from engine.ir.shapes import broadcast_shapes, promote, reduces_last_axes

SHAPE = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@given(st.lists(SHAPE, min_size=1, max_size=3))
def test_broadcasting_is_numpys(shapes: list[tuple[int, ...]]) -> None:
    try:
        wanted = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(GraphError):
            broadcast_shapes(shapes)
    else:
        assert broadcast_shapes(shapes) == wanted


@pytest.mark.parametrize(
    ("dtypes", "weak", "result"),
    [
        (["float16", "bfloat16"], [], "float32"),
        (["bfloat16", "float32"], [], "float32"),
        (["int64", "float16"], [], "float16"),
        (["uint8", "int8"], [], "int16"),
        (["bool", "int32"], [], "int32"),
        (["bfloat16"], ["float32"], "bfloat16"),
        (["int32"], ["float32"], "float32"),
        (["bool"], ["int64"], "int64"),
        ([], ["int64"], "int64"),
    ],
)
def test_promotion_is_torchs(dtypes: list[str], weak: list[str], result: str) -> None:
    assert promote(dtypes, weak) == result


def test_which_reductions_run_along_rows() -> None:
    assert reduces_last_axes((4, 6), (1,))
    assert reduces_last_axes((4, 6, 8), (1, 2))
    assert reduces_last_axes((4, 6, 1), (1,))
    assert not reduces_last_axes((4, 6), (0,))
    assert not reduces_last_axes((4, 6, 8), (0, 2))
