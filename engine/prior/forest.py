"""A random forest that is grown often on few rows and asked about all of them (Breiman 2001).

scikit-learn's trees, without its forest around them: that spends more on checking and copying its trees than on
growing a hundred rows, and walks them once for the answers and once more for the leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeRegressor


def load_libraries() -> None:
    """Import what growing needs, half a second, for whoever has a moment before the first forest."""
    import sklearn.tree  # noqa: F401


Numbers = NDArray[np.float64]
Columns = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What each tree says of each row: `told` [trees, n], and in which of its leaves the row ends: `leaves`, alike."""

    told: Numbers
    leaves: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Grown trees, equal in weight."""

    trees: Sequence[DecisionTreeRegressor]

    @classmethod
    def grow(cls, columns: Columns, labels: Numbers, *, trees: int, seed: int, least_leaf: int = 1) -> Forest:
        """Each tree is grown on as many rows as there are, drawn with replacement from `columns` [n, f], n >= 1.

        `least_leaf` is the fewest rows of a leaf. Same arguments, same trees.
        """
        from sklearn import config_context  # half a second that few runs need
        from sklearn.tree import DecisionTreeRegressor

        random = np.random.RandomState(seed % 2**32)  # the kind that the trees take, so that it is seeded once
        grown = []
        with config_context(skip_parameter_validation=True, assume_finite=True):
            for _ in range(trees):
                drawn = random.randint(0, len(labels), len(labels))
                tree = DecisionTreeRegressor(min_samples_leaf=least_leaf, random_state=random)
                grown.append(tree.fit(columns[drawn], labels[drawn], check_input=False))
        return cls(grown)

    def ask(self, columns: Columns) -> Answers:
        """Answers for float32 [n, f]."""
        leaves = np.stack([tree.tree_.apply(columns) for tree in self.trees])
        told = np.stack([tree.tree_.value[leaf, 0, 0] for tree, leaf in zip(self.trees, leaves, strict=True)])
        return Answers(told, leaves)
