"""Run a kernel written in Gluon without a GPU: what its text calls, with the meaning that it has there, on CPU tensors.

Triton interprets no Gluon, so the text is executed as plain Python with stand-ins for what it imports, one program
after the other. Of a program's roles one runs at a time, until it waits for a barrier that no one has completed, or
has completed one that another waits for. What is asynchronous happens as late as it may: a product when it is waited
for, a copy through TMA when every role waits, and the memory that it goes to holds NaN until then. So a buffer that is
given back too early shows in the result, and roles that wait for each other end in an error.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

import torch

from engine.codegen import KernelSource

_IMPORTS = re.compile(r"^(?:import|from) .*$", re.MULTILINE)
_DTYPES = ("float32", "bfloat16", "float16", "int64")
_LATE_S = 60.0


class Deadlock(Exception):
    """All roles of a program wait for each other."""


def run_gluon(source: KernelSource, arguments: Sequence[Any]) -> None:
    """Run every program of the grid on descriptors of CPU tensors. Raises Deadlock, and whatever the text raises."""
    code = compile(_IMPORTS.sub("", source.text), "<emmy kernel in Gluon>", "exec")
    for place in product(*(range(extent) for extent in source.grid)):
        machine = _Program(place)
        names = machine.names()
        exec(code, names)
        names[source.entry](*(_Descriptor(argument) for argument in arguments))


class _Descriptor:
    """A matrix in device memory that TMA copies blocks of."""

    def __init__(self, given: Any) -> None:
        self.matrix: torch.Tensor = given.base
        self.layout = None
        rows, columns = given.block_shape
        self.block_type = SimpleNamespace(shape=(rows, columns), nbytes=rows * columns * self.matrix.element_size())

    def block(self, place: Sequence[int]) -> torch.Tensor:
        (row, column), (rows, columns) = place, self.block_type.shape
        if row + rows > self.matrix.shape[0] or column + columns > self.matrix.shape[1]:
            raise IndexError(f"a block of {rows} x {columns} at {row}, {column} of {tuple(self.matrix.shape)}")
        return self.matrix[row : row + rows, column : column + columns]


@dataclass(slots=True, eq=False)
class _Barrier:
    """An mbarrier: a phase is complete when all have arrived and all announced bytes are there."""

    count: int = 0
    pending: int = 0
    announced: int = 0
    phase: int = 0

    def settle(self) -> None:
        if self.pending < 0:
            raise RuntimeError("more arrive at a barrier than it counts")
        if not self.pending and not self.announced:
            self.phase ^= 1
            self.pending = self.count


class _Tile:
    """A tensor in registers: computed in float32, rounded where the text converts it."""

    def __init__(self, data: torch.Tensor) -> None:
        self.data = data
        self.type = SimpleNamespace(layout=None)

    def to(self, dtype: torch.dtype) -> _Tile:
        return _Tile(self.data.to(dtype).float())

    def __getitem__(self, index: Any) -> _Tile:
        return _Tile(self.data[index])

    def __add__(self, other: Any) -> _Tile:
        return _Tile(self.data + _data(other))

    def __sub__(self, other: Any) -> _Tile:
        return _Tile(self.data - _data(other))

    def __mul__(self, other: Any) -> _Tile:
        return _Tile(self.data * _data(other))

    def __rtruediv__(self, other: Any) -> _Tile:
        return _Tile(_data(other) / self.data)

    def __ge__(self, other: Any) -> _Tile:
        return _Tile(self.data >= _data(other))


def _data(value: Any) -> Any:
    return value.data if isinstance(value, _Tile) else value


class _Memory:
    """Shared memory, or a part of it."""

    def __init__(self, data: torch.Tensor) -> None:
        self.data = data

    def index(self, place: int) -> _Memory:
        if not 0 <= place < self.data.shape[0]:
            raise IndexError(f"buffer {place} of {self.data.shape[0]}")
        return _Memory(self.data[place])

    def permute(self, order: Sequence[int]) -> _Memory:
        return _Memory(self.data.permute(*order))

    def store(self, value: _Tile) -> None:
        self.data.copy_(value.data)


class _Barriers:
    def __init__(self, count: int) -> None:
        self._each = [_Barrier() for _ in range(count)]

    def index(self, place: int) -> _Barrier:
        return self._each[place]


@dataclass(slots=True)
class _Flying:
    """A product that was started: what it becomes once it is waited for."""

    compute: Callable[[], torch.Tensor]
    result: _Tile | None = None

    def end(self) -> None:
        self.result = _Tile(self.compute())


class _Program:
    """One program: its memory, the copies on their way, and its roles, of which one runs at a time."""

    def __init__(self, place: Sequence[int]) -> None:
        self._place = place
        self._copies: list[Callable[[], None]] = []
        self._running = threading.Condition()
        self._roles = 1
        self._waiting: list[tuple[_Barrier, int]] = []
        self._failed: BaseException | None = None
        self._own = threading.local()

    def names(self) -> dict[str, Any]:
        """What a text finds under the names that it imports."""
        return {
            "gluon": SimpleNamespace(jit=lambda function: function),
            "gl": SimpleNamespace(
                **{name: getattr(torch, name) for name in _DTYPES},
                **_LANGUAGE,
                program_id=self._place.__getitem__,
                allocate_shared_memory=_allocate,
                warp_specialize=self._warp_specialize,
            ),
            "hopper": SimpleNamespace(
                mbarrier=SimpleNamespace(
                    MBarrierLayout=lambda: None, init=_init, wait=self._wait, arrive=self._arrive, expect=self._expect
                ),
                tma=SimpleNamespace(
                    async_copy_global_to_shared=self._load,
                    async_copy_shared_to_global=self._store,
                    store_wait=self._stored,
                ),
                fence_async_shared=lambda: None,
                warpgroup_mma=self._multiply,
                warpgroup_mma_wait=self._multiplied,
            ),
        }

    def _warp_specialize(self, roles: Sequence[tuple[Callable[..., None], tuple[Any, ...]]], *_: Any) -> None:
        self._roles = len(roles)
        threads = [threading.Thread(target=self._role, args=role, daemon=True) for role in roles]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failed is not None:
            raise self._failed

    def _role(self, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        with self._running:
            try:
                function(*arguments)
            except BaseException as error:
                self._failed = self._failed or error
            self._roles -= 1
            self._running.notify_all()

    def _wait(self, barrier: _Barrier, phase: int, pred: bool = True) -> None:
        """Until the phase of this parity is complete. The last role to wait lets the oldest copy arrive."""
        while pred and barrier.phase == phase:
            if self._failed is not None:
                raise Deadlock("another role of the program failed")
            if len(self._waiting) + 1 < self._roles or self._others_may_go_on():
                self._waiting.append((barrier, phase))
                self._running.notify_all()
                self._running.wait(_LATE_S)
                self._waiting.remove((barrier, phase))
            elif self._copies:
                self._copies.pop(0)()
                self._running.notify_all()
            else:
                raise Deadlock(f"the roles of program {tuple(self._place)} wait for each other")

    def _others_may_go_on(self) -> bool:
        return any(barrier.phase != phase for barrier, phase in self._waiting)

    def _arrive(self, barrier: _Barrier, count: int = 1) -> None:
        barrier.pending -= count
        barrier.settle()
        self._running.notify_all()
        while self._others_may_go_on() and self._failed is None:
            self._running.wait(_LATE_S)

    def _expect(self, barrier: _Barrier, size: int) -> None:
        barrier.announced += size
        self._arrive(barrier)

    def _load(self, descriptor: _Descriptor, place: Sequence[int], barrier: _Barrier, memory: _Memory) -> None:
        memory.data.fill_(float("nan"))

        def arrive() -> None:
            memory.data.copy_(descriptor.block(place))
            barrier.announced -= descriptor.block_type.nbytes
            barrier.settle()

        self._copies.append(arrive)

    def _store(self, descriptor: _Descriptor, place: Sequence[int], memory: _Memory) -> None:
        self._mine("stores").append(lambda: descriptor.block(place).copy_(memory.data))

    def _stored(self, pending: int) -> None:
        self._end(self._mine("stores"), pending)

    def _multiply(self, a: Any, b: _Memory, acc: _Tile, use_acc: bool = True, is_async: bool = False) -> _Flying:
        def compute() -> torch.Tensor:
            alone: torch.Tensor = a.data.float() @ b.data.float()
            return alone + acc.data if use_acc else alone

        flying = _Flying(compute)
        self._mine("products").append(flying.end)
        return flying

    def _multiplied(self, pending: int, values: Sequence[Any]) -> Any:
        self._end(self._mine("products"), pending)
        found = tuple(value.result if isinstance(value, _Flying) else value for value in values)
        if any(value is None for value in found):
            raise RuntimeError("a product is used before it has been waited for")
        return found[0] if len(found) == 1 else found

    def _mine(self, kind: str) -> list[Callable[[], object]]:
        """What this role has started and not yet waited for, oldest first."""
        held: dict[str, list[Callable[[], object]]] = self._own.__dict__
        return held.setdefault(kind, [])

    @staticmethod
    def _end(started: list[Callable[[], object]], pending: int) -> None:
        while len(started) > pending:
            started.pop(0)()


def _init(barrier: _Barrier, count: int) -> None:
    barrier.count = barrier.pending = count


def _allocate(dtype: torch.dtype, shape: Sequence[int], layout: object) -> Any:
    return _Barriers(shape[0]) if dtype == torch.int64 else _Memory(torch.full(tuple(shape), float("nan"), dtype=dtype))


def _where(condition: Any, left: Any, right: Any) -> Any:
    if not isinstance(condition, _Tile):
        return left if condition else right
    return _Tile(torch.where(condition.data, _data(left), _data(right)))


def _arange(start: int, end: int, layout: object = None) -> _Tile:
    return _Tile(torch.arange(start, end))


def _layout(*_: Any) -> None:
    return None


def _static_range(count: int) -> Iterator[int]:
    return iter(range(count))


_LANGUAGE: dict[str, Any] = {
    "constexpr": None,
    "NVMMADistributedLayout": _layout,
    "DotOperandLayout": _layout,
    "SliceLayout": _layout,
    "arange": _arange,
    "convert_layout": lambda tile, *_, **__: tile,
    "exp2": lambda tile: _Tile(torch.exp2(tile.data)),
    "max": lambda tile, axis: _Tile(tile.data.amax(axis)),
    "maximum": lambda left, right: _Tile(torch.maximum(left.data, right.data)),
    "minimum": min,
    "reshape": lambda tile, shape: _Tile(tile.data.reshape(shape)),
    "static_range": _static_range,
    "sum": lambda tile, axis: _Tile(tile.data.sum(axis)),
    "thread_barrier": lambda: None,
    "where": _where,
    "zeros": lambda shape, *_: _Tile(torch.zeros(shape)),
}
