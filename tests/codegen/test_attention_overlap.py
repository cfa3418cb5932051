"""Attention kernels whose warps have roles: what is refused, which tiles they walk, what ptxas makes of them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import triton
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codegen import GLUON, KernelSource, illegal_because, offered_schedules, render
from engine.codegen.attention_facts import attention_facts
from engine.codegen.attention_overlap import shared_bytes
from engine.codegen.tile_order import heads_of_a_group, longest_program, turns_of
from engine.ir import Kernel
from engine.vocabulary import KnobValue, Schedule, Target
from tests.codegen.attention_bodies import attention, slices_of_keys
from tests.codegen.attention_prologue_bodies import QWEN3_LAYER
from tests.codegen.test_compiles import build
from tests.codegen.test_golden import attention_roles, attention_schedule, cases

H200 = Target()
ROLES = [name for name in cases() if name.startswith("attention_overlap")]
CAUSAL = Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", batch=4, causal=True))
FULL = Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", batch=4))
HALF_HEAD = Kernel("attention", attention(16, 2048, 2048, 64, "float16", causal=True, group=2))


def reason(kernel: Kernel, target: Target = H200, **changes: KnobValue) -> str:
    mask: dict[str, KnobValue] = {} if attention_facts(kernel.body).unmasked else {"MASK": "cut"}
    schedule = attention_roles(**{**mask, "OVERLAP": "specialized", **changes})
    return illegal_because(kernel, schedule, target) or "legal"


def body(**changes: object) -> Kernel:
    shape: dict[str, object] = {"heads": 4, "rows": 1024, "keys": 1024, "head": 128, "dtype": "bfloat16"}
    return Kernel("attention", attention(**{**shape, **changes}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kernel", "part"),
    [
        (body(dtype="float32", head=64), "these are float32"),
        (body(head=80), "heads of 64 or 128 elements, and these are 80"),
        (body(width=64), "128 for scores, 64 for values"),
        (body(rows=1000), "the 1000 here are no multiple of that: leave OVERLAP out"),
        (body(keys=1000), "divides no keys"),
        (body(causal=True, window=100), "another one, or not the only one"),
        (body(hidden=(1, 1, 1024, 1024)), "another one, or not the only one"),
        (body(causal=True, offset=-128), "some queries have none"),
        (body(causal=True, offset=128), "keys end before them"),
        (body(rows=512, causal=True, offset=64), "inside of a block"),
        (Kernel("attention", slices_of_keys(2, 3, 128, 1024, 64, "bfloat16")), "stores one result"),
        (Kernel("attention", QWEN3_LAYER.body()), "here they are computed in the kernel: leave OVERLAP out"),
    ],
)
def test_what_can_not_be_written_so_is_refused_in_words(kernel: Kernel, part: str) -> None:
    found = reason(kernel)
    assert part in found
    assert found.startswith("OVERLAP=specialized ")
    assert found.endswith(".")
    offered = next(iter(offered_schedules(kernel, H200))).as_dict()
    assert "OVERLAP" not in offered or kernel.body == body(keys=1000).body


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"BLOCK_M": 64, "NUM_WARPS": 4}, "needs BLOCK_M=128, NUM_WARPS=8 here"),
        ({"LOADS": "pointer"}, "needs LOADS=descriptor here"),
        ({"MASK": "every"}, "needs MASK=cut here"),
        ({"BLOCK_N": 32}, "BLOCK_N=32"),
        ({"NUM_STAGES": 1}, "NUM_STAGES=2 or more"),
        ({"NUM_STAGES": 3}, "shared memory"),
        ({"OVERLAP": "both"}, "OVERLAP is one of 'none', 'specialized', 'persistent'"),
    ],
)
def test_other_knobs_have_to_fit(changes: dict[str, KnobValue], part: str) -> None:
    assert part in reason(CAUSAL, **changes)


def test_it_is_for_one_chip_and_for_a_triton_that_has_gluon() -> None:
    assert reason(CAUSAL) == reason(FULL) == reason(HALF_HEAD, NUM_STAGES=3) == "legal"
    assert reason(CAUSAL, OVERLAP="persistent") == "legal"
    assert "compute capability 9.0" in reason(CAUSAL, Target(capability=100))
    assert "this Triton has no such Gluon" in reason(CAUSAL, Target(gluon=False))
    for other in (Target(capability=100), Target(gluon=False)):
        assert "OVERLAP" not in next(iter(offered_schedules(CAUSAL, other))).as_dict()


def test_it_is_offered_for_long_loops_and_walking_for_many_tiles() -> None:
    def offered(kernel: Kernel) -> set[KnobValue]:
        return {schedule.as_dict().get("OVERLAP", "none") for schedule in offered_schedules(kernel, H200)}

    assert offered(CAUSAL) == offered(FULL) == {"none", "specialized", "persistent"}
    assert offered(body(causal=True)) == {"none", "specialized"}
    assert offered(body(rows=512, keys=512, causal=True)) == {"none"}
    roles = [s for s in offered_schedules(CAUSAL, H200) if s["OVERLAP"] != "none"]
    assert {(s["BLOCK_N"], s["NUM_STAGES"]) for s in roles} == {(128, 2)}
    roles = [s for s in offered_schedules(HALF_HEAD, H200) if s["OVERLAP"] != "none"]
    assert {(s["BLOCK_N"], s["NUM_STAGES"]) for s in roles} == {(64, 2), (64, 3), (128, 2), (128, 3)}


def test_a_schedule_without_the_knob_means_what_it_did() -> None:
    old = attention_schedule(LOADS="descriptor", MASK="cut", BLOCK_N=64)
    assert render(CAUSAL, old) == render(CAUSAL, Schedule.of({**old.as_dict(), "OVERLAP": "none"}))
    assert "dialect" not in render(CAUSAL, old).to_json()


@pytest.mark.parametrize("name", ROLES)
def test_a_source_travels_and_is_not_changed_for_dependent_launch(name: str) -> None:
    subject, schedule = cases()[name]
    source = render(subject, schedule)
    assert source.dialect == GLUON
    assert KernelSource.from_json(source.to_json()) == source
    assert render(subject, schedule, pdl=True) == source


def tiles_of(source: KernelSource) -> list[list[tuple[int, int]]]:
    """Head and first query of each tile that each program walks, as the text's own functions say."""
    text = re.sub(r"^(?:import|from) .*$|@gluon\.jit", "", source.text.partition("def produce")[0], flags=re.MULTILINE)
    found = []
    for program in range(source.grid[0]):
        language = SimpleNamespace(
            minimum=min, where=lambda c, a, b: a if c else b, program_id=lambda axis, p=program: p
        )
        names: dict[str, object] = {"gl": language}
        exec(text, names)
        turns, tile = names.get("turns"), names["tile"]
        found.append([tile(turn) for turn in range(turns())] if turns else [tile()])  # type: ignore[operator]
    return found


@settings(max_examples=60, deadline=None)
@given(
    heads=st.integers(1, 70),
    blocks=st.sampled_from([1, 2, 4, 8, 16]),
    programs=st.integers(1, 140),
    causal=st.booleans(),
    overlap=st.sampled_from(["specialized", "persistent"]),
)
def test_every_tile_is_walked_once(heads: int, blocks: int, programs: int, causal: bool, overlap: str) -> None:
    kernel = Kernel("attention", attention(heads, 128 * blocks, 128 * blocks, 64, "bfloat16", causal=causal))
    mask: dict[str, KnobValue] = {"MASK": "cut"} if causal else {}
    schedule = attention_roles(OVERLAP=overlap, **mask)
    found = tiles_of(render(kernel, schedule, Target(multiprocessors=programs)))
    assert len(found) == (min(programs, heads * blocks) if overlap == "persistent" else heads * blocks)
    every = sorted(tile for tiles in found for tile in tiles)
    assert every == [(head, 128 * block) for head in range(heads) for block in range(blocks)]
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_programs_end_together() -> None:
    found = tiles_of(render(CAUSAL, attention_roles(MASK="cut", OVERLAP="persistent")))
    took = [sum(first // 128 + 1.7 for _, first in tiles) for tiles in found]
    assert max(took) == pytest.approx(longest_program(64, 16, 132, heads_of_a_group(64, 16, 132)))
    assert max(took) < 1.01 * sum(took) / len(took)


@given(heads=st.integers(1, 300), blocks=st.integers(1, 64), programs=st.sampled_from([16, 78, 132, 144]))
@settings(max_examples=40, deadline=None)
def test_groups_are_heads_that_share_l2_or_all(heads: int, blocks: int, programs: int) -> None:
    group = heads_of_a_group(heads, blocks, programs)
    assert 1 <= group <= 32 or group == heads
    spans = [longest_program(heads, blocks, programs, size) for size in (group, min(16, heads))]
    assert spans[0] <= spans[1]
    turns, last = turns_of(heads * blocks, programs)
    assert (turns - 1) * programs + last == heads * blocks
    assert 0 < last <= programs


@pytest.mark.parametrize("name", ROLES)
def test_powers_are_taken_while_products_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the machine code, between the wait for the scores and the one for the product with the values, for each of
    the two groups. No register is spilled, three warp groups start, and shared memory is what is counted."""
    subject, schedule = cases()[name]
    built = build(subject, schedule, tmp_path, monkeypatch)
    assert built.build.registers == 168
    assert not built.build.spills
    assert built.kernel.metadata.num_warps == 12
    counted = shared_bytes(attention_facts(subject.body), schedule.as_dict())
    assert counted - 512 <= (built.build.shared_bytes or 0) <= counted
    ptx = built.kernel.asm["ptx"]
    assert ".target sm_90a" in ptx
    assert re.search(r"setmaxnreg\.inc\.sync\.aligned\.u32\s+240", ptx)
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        pytest.skip("this Triton brings no cuobjdump")
    (tmp_path / "cubin").write_bytes(built.kernel.asm["cubin"])
    told = subprocess.run([tool, "-sass", tmp_path / "cubin"], capture_output=True, text=True, timeout=60, check=True)
    assert beside(told.stdout) == [int(schedule["BLOCK_N"]) // 2 + 2] * 2


def beside(sass: str) -> list[int]:
    """Powers between a wait for all products but one and the next wait for all."""
    found: list[int] = []
    inside = False
    for line in sass.splitlines():
        if "WARPGROUP.DEPBAR.LE gsb0, 0x1" in line:
            inside = True
            found.append(0)
        elif "WARPGROUP.DEPBAR.LE gsb0, 0x0" in line:
            inside = False
        elif inside and "MUFU.EX2" in line:
            found[-1] += 1
    return found
