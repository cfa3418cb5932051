from __future__ import annotations

import pytest

from engine.codegen import FAMILIES, illegal_because, offered_schedules, render, schedule_space
from engine.codegen.family import Rule
from engine.codegen.pointwise import Pointwise
from engine.codegen.space import ScheduleSpace
from engine.ir import Kernel
from engine.knobs import KNOB_ORDER, KNOBS, canonical_position
from engine.vocabulary import Option, Schedule, Target
from tests.codegen.bodies import BODIES, kernel, matmul, rms_norm, softmax

H200 = Target()
SMALL_CHIP = Target(multiprocessors=3)
EVERY_BODY = [(family, name) for family, bodies in BODIES.items() for name in bodies]


def leaves(space: ScheduleSpace, path: tuple[Option, ...] = ()) -> list[Schedule]:
    fork = space.fork(path)
    if fork is None:
        return [space.schedule(path)]
    return [leaf for option in fork.options for leaf in leaves(space, (*path, option))]


@pytest.fixture(scope="module", params=EVERY_BODY, ids="-".join)
def subject(request: pytest.FixtureRequest) -> Kernel:
    """Each body in turn, for all tests of it: what it offers is listed once."""
    return kernel(*request.param)


def spread(schedules: list[Schedule], most: int) -> list[Schedule]:
    """About so many of them, from the first to the last."""
    return schedules[:: -(-len(schedules) // most)]


def test_every_offered_schedule_is_full_legal_and_distinct(subject: Kernel) -> None:
    offered = list(offered_schedules(subject, SMALL_CHIP))
    assert offered
    assert len(set(offered)) == len(offered)
    for schedule in spread(offered, 60):
        asked = {name for name in FAMILIES[subject.family].knobs if not KNOBS[name].optional}
        assert asked <= set(schedule.as_dict()) <= set(FAMILIES[subject.family].knobs)
        assert illegal_because(subject, schedule, SMALL_CHIP) is None


def test_offered_schedules_render_to_python(subject: Kernel) -> None:
    for schedule in spread(list(offered_schedules(subject, SMALL_CHIP)), 16):
        source = render(subject, schedule, SMALL_CHIP)
        compile(source.text, "kernel", "exec")
        assert f"def {source.entry}(" in source.text
        assert source == render(subject, schedule, SMALL_CHIP)
        assert source.num_warps == schedule["NUM_WARPS"]


@pytest.mark.parametrize(("family", "name"), [("contraction", "bmm"), ("rowwise", "rms_norm"), ("pointwise", "floats")])
def test_tree_has_exactly_the_offered_leaves_in_canonical_order(family: str, name: str) -> None:
    subject = kernel(family, name)
    found = leaves(schedule_space(subject, SMALL_CHIP))
    assert found == list(offered_schedules(subject, SMALL_CHIP))

    def position(schedule: Schedule) -> list[tuple[int, int]]:
        return [canonical_position(*knob) for knob in sorted(schedule.knobs, key=lambda k: KNOB_ORDER[k[0]])]

    assert found == sorted(found, key=position)


@pytest.mark.parametrize(("family", "name"), [("contraction", "ragged_fp32"), ("rowwise", "softmax_long")])
def test_no_fork_below_the_root_has_one_option_and_none_is_a_dead_end(family: str, name: str) -> None:
    space = schedule_space(kernel(family, name), SMALL_CHIP)
    open_paths: list[tuple[Option, ...]] = [()]
    while open_paths:
        path = open_paths.pop()
        fork = space.fork(path)
        if fork is not None:
            assert len(fork.options) > 1
            open_paths += [(*path, option) for option in fork.options]


def test_answer_depends_on_the_path_alone() -> None:
    subject = kernel("contraction", "even_bf16")
    fresh, used = schedule_space(subject, H200), schedule_space(subject, H200)
    leaves(used)
    first = fresh.fork(())
    assert first is not None
    path = (first.options[-1],)
    assert fresh.fork(path) == used.fork(path)


def test_path_that_no_offered_schedule_completes_is_a_dead_end() -> None:
    fork = schedule_space(kernel("contraction", "even_bf16"), H200).fork((Option((("BLOCK_M", 8),)),))
    assert fork is not None
    assert fork.options == ()


def test_knobs_that_a_path_decided_are_not_asked_again() -> None:
    fork = schedule_space(kernel("pointwise", "floats"), H200).fork((Option((("BLOCK", 256), ("EVICTION", ""))),))
    assert fork is not None
    assert len(fork.options) > 1
    assert all(set(dict(option.knobs)) == {"NUM_WARPS"} for option in fork.options)


def test_whole_space_of_one_schedule_is_one_fork_with_one_option() -> None:
    class OneSchedule(Pointwise):
        def rules(self, kernel: Kernel, target: Target) -> tuple[Rule, ...]:
            return (Rule(self.knobs, lambda v: None if tuple(v.values()) == (256, "", 4) else "No."),)

    space = ScheduleSpace(OneSchedule(), kernel("pointwise", "floats"), H200)
    fork = space.fork(())
    assert fork is not None
    assert len(fork.options) == 1
    assert space.fork(fork.options) is None
    assert space.schedule(fork.options).as_dict() == {"BLOCK": 256, "EVICTION": "", "NUM_WARPS": 4}


def test_space_without_a_schedule_is_a_dead_end() -> None:
    class NoSchedule(Pointwise):
        def rules(self, kernel: Kernel, target: Target) -> tuple[Rule, ...]:
            return (Rule(("BLOCK",), lambda v: "No."),)

    fork = ScheduleSpace(NoSchedule(), kernel("pointwise", "floats"), H200).fork(())
    assert fork is not None
    assert fork.options == ()


@pytest.mark.parametrize(
    ("subject", "least", "most"),
    [
        (Kernel("contraction", matmul(4096, 4096, 4096, "bfloat16")), 1000, 6000),
        (Kernel("contraction", matmul(512, 512, 512, "float32")), 1000, 6000),
        (Kernel("contraction", matmul(1, 4096, 4096, "bfloat16", turn_right=True)), 300, 6000),
        (Kernel("rowwise", softmax((16384,), 4096, "bfloat16")), 300, 6000),
        (Kernel("rowwise", rms_norm(16384, 4096, "bfloat16")), 300, 6000),
        (kernel("pointwise", "binary"), 9, 200),
    ],
)
def test_spaces_are_large_enough_to_search_and_small_enough_to_cover(subject: Kernel, least: int, most: int) -> None:
    assert least <= sum(1 for _ in offered_schedules(subject, H200)) <= most


@pytest.mark.parametrize(
    ("subject", "knobs"),
    [
        # the fastest hand-made schedules measured on an H200
        (
            Kernel("contraction", matmul(4096, 4096, 4096, "bfloat16")),
            {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "LOADS": "descriptor", "GROUP_M": 8, "PERSISTENT": True}
            | {"NUM_WARPS": 8, "NUM_STAGES": 3, "PRECISION": "ieee", "STORES": "halves"},
        ),
        (
            Kernel("contraction", matmul(512, 512, 512, "float32")),
            {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 64, "LOADS": "pointer", "GROUP_M": 1, "PERSISTENT": False}
            | {"NUM_WARPS": 4, "NUM_STAGES": 4, "PRECISION": "tf32x3"},
        ),
        (
            Kernel("rowwise", softmax((16384,), 4096, "bfloat16")),
            {"ROWS": 2, "COLUMNS": 4096, "EVICTION": "", "PERSISTENT": False, "NUM_WARPS": 8, "NUM_STAGES": 1},
        ),
        (
            Kernel("rowwise", rms_norm(16384, 4096, "bfloat16")),
            {"ROWS": 1, "COLUMNS": 4096, "EVICTION": "", "PERSISTENT": False, "NUM_WARPS": 2, "NUM_STAGES": 1},
        ),
    ],
)
def test_schedules_known_to_be_fast_are_offered(subject: Kernel, knobs: dict[str, int | str | bool]) -> None:
    assert Schedule.of(knobs) in set(offered_schedules(subject, H200))


def test_listing_what_is_offered_changes_no_answer(subject: Kernel) -> None:
    fresh = ScheduleSpace(FAMILIES[subject.family], subject, SMALL_CHIP)
    listed = schedule_space(subject, SMALL_CHIP)
    first = list(listed.offered())
    assert (
        first == list(listed.offered()) == list(ScheduleSpace(FAMILIES[subject.family], subject, SMALL_CHIP).offered())
    )
    for last in (0, -1):
        path: tuple[Option, ...] = ()
        while (fork := fresh.fork(path)) is not None:
            assert listed.fork(path) == fork
            path = (*path, fork.options[last])
        assert listed.fork(path) is None


def test_a_path_that_decides_knobs_in_another_order_is_answered_alike() -> None:
    listed, fresh = (ScheduleSpace(FAMILIES["contraction"], kernel("contraction", "bmm"), SMALL_CHIP) for _ in range(2))
    legal = list(listed.offered())[-1]
    for name in ("NUM_WARPS", "BLOCK_K", "BLOCK_N"):
        path = (Option(((name, legal[name]),)),)
        assert listed.fork(path) == fresh.fork(path)
    impossible = (Option((("NUM_WARPS", 1), ("NUM_STAGES", 5), ("BLOCK_M", 256), ("BLOCK_N", 256))),)
    assert listed.fork(impossible) == fresh.fork(impossible)


def test_a_rule_reads_its_own_knobs_and_no_others(subject: Kernel) -> None:
    offered = list(offered_schedules(subject, SMALL_CHIP))
    for schedule in (offered[0], offered[-1]):
        for rule in FAMILIES[subject.family].rules(subject, SMALL_CHIP):
            knobs = schedule.as_dict()
            if knobs.keys() >= set(rule.knobs):
                assert rule.broken({knob: knobs[knob] for knob in rule.knobs}) is None


def test_each_knob_says_what_it_is_and_where_it_won() -> None:
    for knob in KNOBS.values():
        assert knob.meaning, knob.name
        assert knob.won, knob.name


def test_equal_kernels_share_what_a_space_remembers() -> None:
    one, other = kernel("contraction", "bmm"), kernel("contraction", "bmm")
    assert schedule_space(one, SMALL_CHIP) is schedule_space(other, SMALL_CHIP)
    assert schedule_space(one, SMALL_CHIP) is not schedule_space(other, H200)
