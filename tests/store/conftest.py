"""Real kernels, programs and databases for the store's tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.graph import Graph
from engine.ir.plan import BufferView, Grouping, KernelCall, Program
from engine.store import RunInfo, Store
from engine.vocabulary import (
    BuildReport,
    Context,
    Failure,
    FailureKind,
    Measurement,
    Option,
    Regime,
    Schedule,
    Status,
    Timing,
)


def matmul_body(size: int = 512, dtype: str = "float32") -> Graph:
    build = GraphBuilder()
    left = build.input(TensorSpec.contiguous((size, size), dtype), "x")
    right = build.input(TensorSpec.contiguous((size, size), dtype), "weight")
    return build.build(build.add("matmul", left, right))


def relu_body(size: int = 512) -> Graph:
    build = GraphBuilder()
    return build.build(build.add("relu", build.input(TensorSpec.contiguous((size, size), "float32"), "x")))


@dataclass(frozen=True)
class Sample:
    """One of each thing, and short ways to make more."""

    context: Context = field(default_factory=lambda: Context("NVIDIA H200", "9.0", "580.1", "2.13.0", "3.6.0", "12.8"))
    matmul: Kernel = field(default_factory=lambda: Kernel("contraction", matmul_body(), "matmul"))
    relu: Kernel = field(default_factory=lambda: Kernel("pointwise", relu_body(), "relu"))

    @property
    def program(self) -> Program:
        return Program(matmul_body(), "torch.matmul(x, y)", "cuda")

    @property
    def grouping(self) -> Grouping:
        """matmul, then relu twice."""
        spec = TensorSpec.contiguous((512, 512), "float32")
        views = [BufferView(index, spec) for index in range(5)]
        calls = (
            KernelCall(self.matmul, (views[0], views[1]), (2,)),
            KernelCall(self.relu, (views[2],), (3,)),
            KernelCall(self.relu, (views[3],), (4,)),
        )
        return Grouping((spec,) * 5, calls, (views[4],), (Option((("FUSE", False),)),))

    def run_info(self, target: str = "torch.matmul(x, y)") -> RunInfo:
        return RunInfo(target, self.program, "cuda:0", self.context.gpu, self.context.key, 1, 50, "cold-1", "emmy tune")

    def schedule(self, **knobs: int | str | bool) -> Schedule:
        return Schedule.of({"BLOCK_M": 64, "NUM_WARPS": 4, **knobs})

    def ok(
        self, us: float = 10.0, regime: Regime = Regime.RANKING, kernel: Kernel | None = None, **knobs: int
    ) -> Measurement:
        key = (kernel or self.matmul).key
        timing = Timing(us, us - 0.5, us + 0.5, (us, us + 0.25))
        build = BuildReport(96, 0, 49152, 1.5)
        return Measurement(
            key, self.schedule(**knobs), regime, self.context.key, Status.OK, timing, None, build, 1e-3, 0.25
        )

    def failed(
        self,
        cause: str = "out of resource: shared memory, Required: 262144, Hardware limit: 232448",
        kind: FailureKind = FailureKind.SHARED_MEMORY,
        regime: Regime = Regime.RANKING,
        kernel: Kernel | None = None,
        **knobs: int,
    ) -> Measurement:
        key = (kernel or self.matmul).key
        failure = Failure(kind, cause)
        return Measurement(key, self.schedule(**knobs), regime, self.context.key, Status.FAILED, failure=failure)

    def begin(self, store: Store) -> str:
        """Record what rows refer to, and start a run."""
        store.record_context(self.context)
        store.record_kernel(self.matmul)
        store.record_kernel(self.relu)
        return store.start_run(self.run_info())


@pytest.fixture(scope="session")
def sample() -> Sample:
    return Sample()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tune.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        yield opened


@pytest.fixture
def run(store: Store, sample: Sample) -> str:
    return sample.begin(store)
