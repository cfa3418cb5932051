"""The column names that files are told by are those of every matrix."""

from __future__ import annotations

from engine.prior import COLUMNS, features
from engine.vocabulary import Target

from .kernels import matmul, softmax


def test_every_matrix_has_the_named_columns() -> None:
    for kernel in (matmul(64, 64, 64), softmax(64, 64)):
        assert features(kernel, (), Target()).names == COLUMNS
