"""What calls do to what their functions hold, in Triton's interpreter; the program is `interpreted`."""

from __future__ import annotations

import functools
from typing import Any

import torch

import engine
from tests.deploy.changing import CHANGING
from tests.deploy.hearing import told


def changed_held() -> dict[str, list[Any]]:
    """What functions hold after they were built for an example, is as it was; whether calls then act once, and what
    was said."""
    x, rows = torch.ones(4), {}
    for name, make in CHANGING.items():
        function, held = make()
        before = held()
        compiled, said = told(lambda function=function: engine.compile(function, (x,)))
        same = held() == before
        results, _ = told(lambda compiled=compiled: [float(compiled(x)[0]) for _ in range(3)])
        rows[name] = [same, results == [1.0, 2.0, 3.0], said]
    return rows


def cached() -> dict[str, Any]:
    """A cache that has entries of the user's, and what changes under it: as in eager, and run by kernels in the end."""
    factor = 2.0

    @functools.lru_cache(maxsize=8)
    def table(n: int) -> torch.Tensor:
        return torch.full((4,), n * factor)

    x, kept = torch.ones(4), table(7)
    compiled, said = told(lambda: engine.compile(lambda a: a * table(1), (x,)))
    found: dict[str, Any] = {"said": said, "kept": table(7) is kept, "size": table.cache_info().currsize}
    results = [told(lambda: float(compiled(x)[0]))[0] for _ in range(3)]
    found["kernels"] = len(compiled.call.deployments)
    factor = 3.0
    results.append(float(compiled(x)[0]))
    table(1).mul_(2.0)
    results.append(float(compiled(x)[0]))
    table.cache_clear()
    results += [told(lambda: float(compiled(x)[0]))[0] for _ in range(2)]
    found["real"] = type(table(1)) is torch.Tensor
    return found | {"results": results}


def sizes() -> list[bool]:
    x = torch.ones(4, 4)
    (_, size), said = told(lambda: engine.compile(lambda a: (a * 2.0, a.shape))(x))
    return [type(size) is torch.Size, size == x.shape, not said]
