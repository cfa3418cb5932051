"""Equal kernels that read one buffer at several places, in Triton's interpreter: `python -m tests.deploy.views [SEED]`.

What is built sees constants first and random numbers then, so that a kernel which reads another's place is found. One
JSON object is printed: by case the relative error of every output, and whatever was said instead.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch
import torch.nn.functional as F
from torch import nn

import engine
from engine.runtime import whole_storage
from tests.deploy.hearing import heard

torch.set_num_threads(1)
Function = Callable[..., Any]
Tensors = tuple[torch.Tensor, ...]
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int32)
WIDTH = 48


def flat(found: Any) -> list[torch.Tensor]:
    return (
        [found]
        if isinstance(found, torch.Tensor)
        else [one for part in found if part is not None for one in flat(part)]
    )


def errors(function: Function, made: Callable[[], Tensors]) -> list[float | str]:
    """How far what is built is from eager for other inputs, and whatever it says of itself."""
    built = engine.compile(function)
    with heard() as said, torch.no_grad():
        constants = made()
        for tensor in constants:
            whole_storage(tensor).fill_(1)
        built(*constants)
        inputs = made()
        found, wanted = flat(built(*inputs)), flat(function(*inputs))
    return [*(_off(*pair) for pair in zip(found, wanted, strict=True)), *(sentence[:300] for sentence in said)]


def _off(found: torch.Tensor, wanted: torch.Tensor) -> float:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    return float((found.double() - wanted.double()).norm() / max(float(wanted.double().norm()), 1e-9))


def drawn(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Callable[[], Tensors]:
    draw = torch.Generator().manual_seed(0)

    def made() -> Tensors:
        return tuple((4 * torch.randn(shape, generator=draw)).to(dtype) for shape in shapes)

    return made


def named() -> dict[str, list[float | str]]:
    """What people write."""
    weight = torch.randn(16, 8)
    x = drawn((4, WIDTH))
    return {
        "chunk": errors(lambda x: [part * 2 for part in x.chunk(3, -1)], x),
        "chunk of bfloat16": errors(
            lambda x: [part * 2 for part in x.chunk(3, -1)], drawn((4, WIDTH), dtype=DTYPES[1])
        ),
        "split, unaligned": errors(lambda x: [part * 2 for part in x.split(5, -1)], drawn((4, 15))),
        "unbind": errors(lambda x: [part.softmax(-1) for part in x.unbind(0)], drawn((3, 4, 16))),
        "norms": errors(lambda x: [F.rms_norm(part, (16,)) for part in x.split(16, -1)], x),
        "products": errors(lambda x: [part @ weight for part in x.split(16, -1)], x),
        "select": errors(lambda x: [x[:, place].exp() for place in (0, 4, 5, 8)], x),
        "narrow": errors(lambda x: [x.narrow(0, place, 2).cumsum(0) + 1 for place in (0, 2)], x),
        "one buffer twice": errors(lambda a, b: [a.exp() - b, b.exp() - a], _overlapping),
        "turned": errors(lambda x: [part.t().softmax(-1) for part in x.chunk(3, -1)], x),
        "twice in a kernel": errors(
            lambda x: [x[:, a : a + 8] - x[:, b : b + 8].exp() for a, b in ((0, 8), (16, 40))], x
        ),
        "an input that lies somewhere": errors(lambda x: [part + 1 for part in x.chunk(2, -1)], _inside),
        "an intermediate": errors(lambda x: [part.tanh() for part in (x @ x.t() @ x).chunk(3, -1)], drawn((4, WIDTH))),
        "other orders": errors(_in_other_orders, drawn((8, 8), (8, 8), (8, 8), (8, 8))),
        "numbers alone as rows": errors(lambda x: x.new_zeros(2, 16) @ weight + x[:2, :8], x),
    }


def _inside() -> Tensors:
    return (torch.randn(4, 2 * WIDTH)[:, 8 : 8 + WIDTH],)


def _overlapping() -> Tensors:
    whole = torch.randn(200)
    return whole.as_strided((3, 5), (7, 1), 12), whole.as_strided((3, 5), (7, 1), 100)


def _in_other_orders(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> list[torch.Tensor]:
    """One kernel twice; the second one's inputs are met the other way round."""
    first = a.exp() + b * 2
    twice = d * 2
    return [first, twice + c.exp()]


def modules() -> dict[str, list[float | str]]:
    kinds: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
        "LSTM": (nn.LSTM(16, 16, batch_first=True), (2, 3, 16)),
        "GRU": (nn.GRU(16, 16, batch_first=True), (2, 3, 16)),
        "MultiheadAttention": (nn.MultiheadAttention(32, 4, batch_first=True), (2, 5, 32)),
    }
    found = {}
    for name, (module, shape) in kinds.items():
        module.eval().requires_grad_(requires_grad=False)
        found[name] = errors(_of_attention(module) if "Attention" in name else _first_of(module), drawn(shape))
    return found


def _first_of(module: nn.Module) -> Function:
    return lambda x: module(x)[0]


def _of_attention(module: nn.Module) -> Function:
    return lambda x: module(x, x, x, need_weights=False)[0]


View = tuple[tuple[int, ...], tuple[int, ...], int]
"""Shape, strides and offset."""


def by_chance(seed: int) -> dict[str, list[float | str]]:
    """Views of one buffer by chance, two or three of one shape, each read by the same kernel, alone and in pairs: as
    parts of one input, and as inputs."""
    draw = random.Random(seed)
    found = {}
    for number, dtype in zip(range(14), itertools.cycle(DTYPES), strict=False):
        how = draw.choice(("scaled", "summed", "pairs"))
        if number % 2:
            rows, columns = draw.randint(4, 9), draw.randint(24, 60)
            places = list(_places(draw, rows, columns))
            name = f"{number}: {how} {dtype}, {rows}x{columns}, {places}"
            found[name] = errors(_reader(how, places), drawn((rows, columns), dtype=dtype))
        else:
            views = list(_views(draw))
            found[f"{number}: {how} {dtype}, {views}"] = errors(_reader(how), _made(views, dtype))
    return found


def _places(draw: random.Random, rows: int, columns: int) -> Iterator[tuple[slice, slice, bool]]:
    """The rows and columns of each part, and whether it is turned."""
    height, width, step, turned = draw.randint(1, 3), draw.randint(2, 8), draw.randint(1, 2), draw.random() < 0.3
    multiple = draw.choice((1, 1, 4, 8))
    for _ in range(draw.randint(2, 3)):
        top, left = draw.randint(0, rows - height), draw.randrange(0, columns - width * step, multiple)
        yield slice(top, top + height), slice(left, left + width * step, step), turned


def _views(draw: random.Random) -> Iterator[View]:
    height, width = draw.randint(1, 3), draw.randint(2, 8)
    strides = draw.choice(((20, 1), (1, 20), (width, 1), (30, 2)))
    multiple = draw.choice((1, 1, 4, 8))
    for _ in range(draw.randint(2, 3)):
        yield (height, width), strides, draw.randrange(0, 200, multiple)


def _made(views: list[View], dtype: torch.dtype) -> Callable[[], Tensors]:
    whole = drawn((400,), dtype=dtype)

    def made() -> Tensors:
        (buffer,) = whole()
        return tuple(buffer.as_strided(*view) for view in views)

    return made


def _reader(how: str, places: Sequence[tuple[slice, slice, bool]] = ()) -> Function:
    def function(*tensors: torch.Tensor) -> list[torch.Tensor]:
        parts = [tensors[0][rows, columns] for rows, columns, _ in places] or list(tensors)
        parts = [part.t() if places and places[0][2] else part for part in parts]
        if how == "scaled":
            return [part * 3 for part in parts]
        if how == "summed":
            return [part.sum(-1) for part in parts]
        return [a * 2 - b for a, b in itertools.pairwise([*parts, parts[0]])]

    return function


if __name__ == "__main__":
    torch.manual_seed(0)
    print(json.dumps(named() | modules() | by_chance(int(sys.argv[1]) if sys.argv[1:] else 0)))
