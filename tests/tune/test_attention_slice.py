"""What is tuned of an attention: its slice carries what produces the scores, so the fused kernel is built and timed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.codegen import declined_because, offered_schedules, render
from engine.events import Event, GroupingScored, KernelFound, Measured
from engine.grouping import grouping_space
from engine.ir import GraphBuilder, TensorSpec
from engine.ir.kernel import Kernel
from engine.ir.ops import REDUCTIONS
from engine.ir.slices import cut_slice
from engine.session import TuningSession
from engine.tune.settings import Settings
from engine.vocabulary import Regime, Schedule, Target
from tests.codegen.attention_bodies import add_softmax
from tests.codegen.attention_prologue_bodies import Heads

from .fake_device import FakeDevice, landscape_us
from .rig import program_of, tune_with

LAYER = Heads(4, 24, 24, 32, "bfloat16", group=2).body()
SETTINGS = Settings(patience=5, outer_patience=12)


def _reductions(kernel: Kernel) -> int:
    return sum(op.kind in REDUCTIONS for op in kernel.body.ops)


def _computes_heads(kernel: Kernel) -> bool:
    """Whether it is the attention kernel that norms its queries and keys itself (two reductions are its softmax)."""
    return kernel.family == "attention" and _reductions(kernel) == 4


def _reads_heads(kernel: Kernel) -> bool:
    return kernel.family == "attention" and _reductions(kernel) == 2


def _fast(chosen: Callable[[Kernel], bool]) -> Callable[[Kernel, Schedule], float]:
    """A GPU on which the chosen kernels take 2 to 3 us, other attention kernels 20 more than all else."""

    def us(kernel: Kernel, schedule: Schedule) -> float:
        share = landscape_us(kernel, schedule) / 110.0
        return 2.0 + share if chosen(kernel) else 4.0 + share + 20.0 * (kernel.family == "attention")

    return us


@pytest.mark.parametrize("chosen", [_computes_heads, _reads_heads])
def test_the_fused_attention_is_reached_and_timed_and_wins_where_it_is_fast(
    chosen: Callable[[Kernel], bool], tmp_path: Path
) -> None:
    kernels: dict[str, Kernel] = {}

    def us(kernel: Kernel, schedule: Schedule) -> float:
        kernels[kernel.key] = kernel
        return _fast(chosen)(kernel, schedule)

    events: list[Event] = []
    finished = tune_with(tmp_path / "t.db", FakeDevice(us), program_of(LAYER), SETTINGS, events=events)
    (key,) = [key for key, kernel in kernels.items() if chosen(kernel)]
    assert "attention" in {e.family for e in events if isinstance(e, KernelFound) and e.kernel == key}
    timed = [e for e in events if isinstance(e, Measured) and e.kernel == key and e.regime == Regime.RANKING]
    assert len(timed) >= 5
    assert all(event.us is not None and event.us < 3.0 for event in timed)
    sums = [event.sum_us for event in events if isinstance(event, GroupingScored)]
    assert len(sums) >= 3
    assert finished.sum_us == min(us for us in sums if us is not None)
    assert finished.sum_us < 24.0

    session = TuningSession.replay(tmp_path / "t.db", settings=SETTINGS)
    with session:
        session.start()
        assert session.wait(60)
    assert session.failure is None
    assert session.summary is not None
    assert session.summary.measured == 0
    assert session.summary.sum_us == pytest.approx(finished.sum_us)


def test_a_slice_of_attention_reads_what_the_scores_are_made_of() -> None:
    space = grouping_space(LAYER)
    path: tuple[object, ...] = ()
    while (fork := space.fork(path)) is not None:  # type: ignore[arg-type]
        path = (*path, fork.options[0])
    grouping = space.grouping(path)  # type: ignore[arg-type]
    (call,) = [call for call in grouping.calls if call.kernel.family == "attention"]
    cut = cut_slice(grouping, call.kernel.key)
    scores = next(op.out for op in cut.kernel.body.ops if op.kind == "matmul")
    assert scores.shape not in {spec.shape for spec in cut.inputs}
    schedule = next(iter(offered_schedules(cut.kernel, Target())))
    assert render(cut.kernel, schedule, Target()).text.count("tl.dot(") == 2


def test_an_attention_of_given_scores_could_not_be_built() -> None:
    """Why the slice carries their producer: with a stand-in for the scores no attention kernel is left."""
    b = GraphBuilder()
    scores = b.input(TensorSpec.contiguous((4, 24, 24), "float32"))
    values = b.input(TensorSpec.contiguous((4, 24, 32), "bfloat16"))
    body = b.build(b.add("matmul", add_softmax(b, scores, "bfloat16"), values))
    assert declined_because(Kernel("attention", body)) == "An attention kernel holds two matmuls, not 1."
