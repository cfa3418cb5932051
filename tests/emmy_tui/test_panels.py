"""What panels say of a snapshot, without a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emmy_tui import format as fmt
from emmy_tui.best import best_path
from emmy_tui.source import Mode
from emmy_tui.text import ASCII, UNICODE, line_width, plain
from emmy_tui.view import View
from emmy_tui.widgets.curve import Points, drawn, plot, rounded_end
from emmy_tui.widgets.event_log import Lines, entries, entry_line, schedule_words
from emmy_tui.widgets.kernel_list import Columns, header_line, kernel_line
from emmy_tui.widgets.kernel_name import kernel_name, short_name
from emmy_tui.widgets.selected import selected_lines
from emmy_tui.widgets.status import status_line
from emmy_tui.widgets.totals import total_line, total_lines
from engine.events import Assembled, Event, KernelFound, Measured, NodeState, RunFinished, RunStarted
from engine.snapshot import LOG_LIMIT, DeployTime, KernelRow, Snapshot, apply
from engine.vocabulary import Schedule
from tests.emmy_tui.looking import NOW
from tests.emmy_tui.scripted import WORKS, Script, search_events


def folded(events: list[Event]) -> Snapshot:
    snapshot = Snapshot()
    for event in events:
        apply(snapshot, event)
    return snapshot


SNAPSHOT = folded(search_events())


def view(**more: object) -> View:
    shown = View(snapshot=SNAPSHOT, now=NOW, state=SNAPSHOT.state)
    for name, value in more.items():
        setattr(shown, name, value)
    return shown


@given(st.integers(min_value=38, max_value=200))
def test_kernel_lines_fill_the_width_and_stand_under_their_header(width: int) -> None:
    columns = Columns.of(width, 11)
    header = plain(header_line(columns, UNICODE))
    assert len(header) <= width
    for row in SNAPSHOT.kernels.values():
        line = plain(kernel_line(row, row.count, 1000.0, False, columns, UNICODE))
        assert len(line) <= width
        end = header.index("us ") + len("us")
        assert line[end - 7 : end].strip() == fmt.us(row.chosen_us)
        if columns.ranking:
            end = header.index("ranking") + len("ranking")
            assert line[end - 7 : end].strip() == fmt.us(row.best_us)


def test_a_kernel_shows_its_share_of_the_sum() -> None:
    total = SNAPSHOT.counted_us()
    assert total is not None
    row = SNAPSHOT.kernels["77d2"]
    line = plain(kernel_line(row, row.count, total, True, Columns.of(100), UNICODE))
    assert row.chosen_us is not None
    assert f"{row.chosen_us * row.count / total:.0%}" in line
    assert "✓ done" in line
    failed = plain(kernel_line(SNAPSHOT.kernels["e911"], 28, total, False, Columns.of(100), ASCII))
    assert "x failed 9" in failed
    assert failed.isascii()


def test_cached_hits_in_a_row_are_one_line() -> None:
    lines = [plain(entry_line(entry, SNAPSHOT, 120, UNICODE)) for entry in entries(SNAPSHOT.log)]
    hits = [line for line in lines if " hit " in line]
    assert any("from the database, no GPU work" in line for line in hits)
    measured = sum(isinstance(event, Measured) for event in SNAPSHOT.log)
    assert sum(entry.count for entry in entries(SNAPSHOT.log)) == len(SNAPSHOT.log) > measured


@pytest.mark.parametrize("word", ["BEST", "FAIL", "ok", "hit", "kernel", "group", "whole", "end", "state"])
def test_every_kind_of_line_occurs(word: str) -> None:
    lines = [plain(entry_line(entry, SNAPSHOT, 120, UNICODE)) for entry in entries(SNAPSHOT.log)]
    assert any(line[9:16].strip() == word for line in lines)


def test_schedules_are_written_in_the_order_of_the_forks() -> None:
    key = Schedule.of({"NUM_WARPS": 4, "BLOCK_N": 64, "BLOCK_M": 128}).key
    assert schedule_words(key) == "BLOCK_M=128 BLOCK_N=64 NUM_WARPS=4"
    assert schedule_words("NUM_WARPS=4 OTHER=1 BLOCK_M=128") == "BLOCK_M=128 NUM_WARPS=4 OTHER=1"
    assert schedule_words("{not json") == "{not json"


def test_the_best_path_ends_at_the_best_leaf() -> None:
    for root in SNAPSHOT.roots:
        path = best_path(SNAPSHOT, root)
        best = SNAPSHOT.nodes[root].best_us
        assert bool(path) == (best is not None)
        if path:
            leaf = SNAPSHOT.nodes[path[-1]]
            kernel = SNAPSHOT.kernels.get(leaf.kernel)
            assert leaf.node == kernel.best_node if kernel is not None else leaf.best_us == best
            assert leaf.state in (NodeState.MEASURED, NodeState.OPEN)


def test_selected_shows_numbers_failures_and_siblings() -> None:
    kernel = next(root for root in SNAPSHOT.roots if SNAPSHOT.nodes[root].kernel == "5f1c")
    text = [plain(line) for line in selected_lines(view(node=best_path(SNAPSHOT, kernel)[-1]), 66, 40)]
    assert any("★ best" in line for line in text)
    assert any(line.startswith("ranking") and " us  " in line and " to " in line for line in text)
    assert any("Siblings" in line for line in text)
    failed = next(node for node in SNAPSHOT.nodes.values() if node.failure)
    text = [plain(line) for line in selected_lines(view(node=failed.node), 66, 40)]
    assert any("✗ failed" in line for line in text)
    assert any("out of shared memory" in line for line in text)
    assert "262144" in "".join(text)
    assert [plain(line) for line in selected_lines(view(node="gone"), 66, 40)] == ["No node selected"]


@given(st.integers(min_value=14, max_value=200), st.integers(min_value=4, max_value=50), st.booleans(), st.booleans())
def test_a_curve_fills_its_place_exactly(width: int, height: int, log: bool, by_time: bool) -> None:
    for kernel in ("5f1c", "e911"):
        points = Points(SNAPSHOT.kernels[kernel])
        points.update()
        seen = view(log_scale=log, by_time=by_time, glyphs=ASCII)
        lines = plot(points, drawn(points, width, height, seen), width, seen)
        assert len(lines) == height
        assert all(line_width(line) == width for line in lines)
        assert all(plain(line).isascii() for line in lines)


@given(st.integers(min_value=1, max_value=200))
def test_status_and_totals_never_overflow(width: int) -> None:
    assert line_width(status_line(view(), width)) == width
    assert line_width(total_line(view(), width)) <= width
    assert all(line_width(line) <= max(2, width) for line in total_lines(view(), width))


def test_the_totals_name_the_gap_to_the_assembled_program() -> None:
    text = " ".join(plain(line) for line in total_lines(view(), 120))
    for words in (
        "Σ best 7375 us",
        "assembled 7493 us (+1.6%)",
        "cached 12",
        "failed 17 rows",
        "gpu idle 21%",
        "search 4.0%",
    ):
        assert words in text


@given(st.floats(min_value=0, max_value=1e9))
def test_the_axis_ends_at_a_round_number_not_far_past_the_last_trial(last: float) -> None:
    assert last <= rounded_end(last) <= max(10.0, 1.51 * last)


def test_the_change_compares_the_two_times_of_one_regime() -> None:
    row = KernelRow("k", "matmul", "contraction", "8x8 bf16", 1, 1, 1, first_us=179.1, best_us=178.3)
    row.deployed = DeployTime(182.2, "", "")
    columns = Columns.of(100)
    header = plain(header_line(columns, ASCII)).replace("of all", "share").split()
    cells = plain(kernel_line(row, 1, 182.2, False, columns, ASCII)).split("bf16")[1].split()
    shown = dict(zip(header[2:], cells, strict=False))
    assert [shown[name] for name in ("us", "first", "ranking", "d%")] == ["182.2", "179.1", "178.3", "-0.4"]


def _two_programs(*, total: bool) -> Snapshot:
    """A replay of two programs: the second of one kernel; at its end, the sum over both."""
    script = Script(2, WORKS[:1]).events()
    second = [replace(event, run="r2") if isinstance(event, RunStarted) else event for event in script]
    first = [event for event in search_events() if not isinstance(event, RunFinished)]
    events = [*first, *second]
    if total:
        events = [replace(event, sum_us=7583.0) if isinstance(event, RunFinished) else event for event in events]
    return folded(events)


@pytest.mark.parametrize("total", [False, True], ids=["a database", "a replay"])
def test_with_several_programs_the_sum_says_whose_it_is(total: bool) -> None:
    shown = view(snapshot=_two_programs(total=total))
    header, totals = plain(status_line(shown, 120)), [plain(line) for line in total_lines(shown, 120)]
    own = fmt.us(shown.snapshot.own_groupings()[0].sum_us)
    assert ("Σ 7583 us 2 programs" if total else f"Σ {own} us program 2") in header
    assert ("Σ 7583 us 2 programs" in totals[0]) == total
    assert f"Σ best {own} us program 2" in totals[0]
    assert "in 2 programs" in totals[1]
    ends = [plain(entry_line(entry, shown.snapshot, 200, UNICODE)) for entry in entries(shown.snapshot.log)]
    end = next(line for line in reversed(ends) if " end " in line)
    assert f" {'2 programs' if total else 'program 2'}: measured " in end
    assert end.endswith("Σ 7583 us" if total else f"Σ {own} us")


def _ends(mode: Mode, *, first: bool = True) -> str:
    """The totals after two programs, of 30 s and 10 s."""
    script = Script(2, WORKS[:1]).events()
    second = [replace(event, run="r2") if isinstance(event, RunStarted) else event for event in script]
    events: list[Event] = []
    for run, wall, search, idle in ((search_events(), 30.0, 0.04, 0.2), (second, 10.0, 0.08, 0.4)):
        for event in run:
            if isinstance(event, RunFinished):
                event = replace(event, wall_s=wall, search_share=search, gpu_idle_share=idle)
                if wall == 30.0 and not first:
                    continue
            events.append(event)
    return " ".join(plain(line) for line in total_lines(view(snapshot=folded(events), mode=mode), 120))


def test_the_shares_at_the_end_of_several_programs_are_over_all_of_them() -> None:
    assert "gpu idle 25%  search 5.0%" in _ends(Mode.BROWSE)
    assert "gpu idle 40%  search 8.0% 1 of 2 runs" in _ends(Mode.BROWSE, first=False)
    assert "gpu idle 40%  search 8.0%" in _ends(Mode.LIVE, first=False), "a session says it once, over all"


def test_a_replay_speaks_of_no_idle_gpu() -> None:
    text = " ".join(plain(line) for line in total_lines(view(mode=Mode.REPLAY), 120))
    assert "gpu idle" not in text
    assert "search 4.0%" in text


@pytest.mark.parametrize(
    ("reason", "words", "line"),
    [
        ("not recorded", "", "the whole program's time is not in the recording"),
        ("out of memory", "assembled failed", "assembled program: out of memory"),
    ],
)
def test_an_assembled_program_without_a_time_says_why(reason: str, words: str, line: str) -> None:
    events = [
        replace(event, assembled_us=None, reason=reason) if isinstance(event, Assembled) else event
        for event in search_events()
    ]
    snapshot = folded(events)
    totals = plain(total_lines(view(snapshot=snapshot), 120)[0])
    assert totals.endswith(words)
    assert ("assembled" in totals) == bool(words)
    assert any(line in plain(entry_line(entry, snapshot, 120, UNICODE)) for entry in entries(snapshot.log))


def _alike(*shapes: str) -> Snapshot:
    found = next(event for event in search_events() if isinstance(event, KernelFound))
    events = [replace(found, kernel=f"k{n}", shape=shape) for n, shape in enumerate(shapes)]
    return folded([*events, replace(found, kernel="other", label="softmax")])


def test_kernels_of_one_label_are_told_apart_by_their_shapes() -> None:
    snapshot = _alike("512x512x512 bf16", "4096x4096x4096 bf16")
    names = [kernel_name(row, snapshot) for row in snapshot.kernels.values()]
    assert names == ["matmul 512x512x512", "matmul 4096x4096x4096", "softmax"]
    snapshot = _alike("512x512x512 bf16", "512x512x512 float32")
    assert kernel_name(snapshot.kernels["k1"], snapshot) == "matmul 512x512x512 float32"


@given(st.integers(min_value=19, max_value=60))
def test_a_short_name_cuts_the_label_before_the_shape(width: int) -> None:
    snapshot = _alike("512x512x512 bf16", "4096x4096x4096 bf16")
    name = short_name(snapshot.kernels["k1"], snapshot, width)
    assert name.endswith("4096x4096x4096")
    assert len(name) <= width
    assert short_name(snapshot.kernels["other"], snapshot, width) == "softmax"


@pytest.mark.parametrize("replay", [False, True])
def test_a_log_that_grows_and_is_cut_off_has_the_lines_of_the_whole_log(replay: bool) -> None:
    hits = [replace(one, cached=True) if isinstance(one, Measured) else replace(one) for one in SNAPSHOT.log]
    events = [replace(one) for one in hits * (2 + 2 * LOG_LIMIT // len(hits))]
    snapshot, lines = Snapshot(), Lines()
    for count, event in enumerate(events):
        apply(snapshot, event)
        if count % 37 == 0 or count % 41 == 0:
            lines.update(snapshot.log, replay=replay)
            assert lines.entries == entries(snapshot.log, replay=replay)
