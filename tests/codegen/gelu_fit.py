"""The polynomial of `engine.codegen.half_results`, computed anew: `python -m tests.codegen.gelu_fit` prints it.

-log2(erfc(t / sqrt 2) / 2) is 1 + t q(t); q is fitted on Chebyshev points, so that the largest error of t q(t), which
is the share of ln 2 by which the power is off, becomes least: least squares whose weights are multiplied by the errors
until those are level (Lawson 1961). float64 does: erfc is 1e-10 at the far end and exact to its digits.
"""

from __future__ import annotations

import math

import numpy as np

from engine.codegen.half_results import LOG2_OF_TAIL, TAIL_END

_POINTS = 1500
_ROUNDS = 500


def tail(size: float) -> float:
    """The share of a normal distribution beyond `size` deviations."""
    return math.erfc(size / math.sqrt(2)) / 2


def fitted(end: float = TAIL_END, degree: int = len(LOG2_OF_TAIL) - 1) -> tuple[list[float], float]:
    """Coefficients of log2(tail), from the constant on, and the largest relative error of its power on [0, end]."""
    chebyshev = np.polynomial.chebyshev
    t = end / 2 * (1 - np.cos(np.pi * np.arange(1, _POINTS) / (_POINTS - 1)))
    wanted = np.array([-math.log2(tail(float(one))) for one in t]) - 1
    columns = chebyshev.chebvander(2 * t / end - 1, degree - 1) * t[:, None]
    weights = np.ones_like(t)
    least, best = math.inf, columns[0]
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(columns * root[:, None], wanted * root, rcond=None)[0]
        errors = np.abs(columns @ found - wanted)
        if errors.max() < least:
            least, best = float(errors.max()), found
        weights *= errors
        weights /= weights.sum()
    powers = chebyshev.Chebyshev(best, domain=[0, end]).convert(kind=np.polynomial.Polynomial).coef
    return [-1.0, *(-powers).tolist()], least * math.log(2)


if __name__ == "__main__":
    coefficients, error = fitted()
    print(*coefficients, sep="\n")
    print(f"the power is off by at most {error:.1e} of itself")
