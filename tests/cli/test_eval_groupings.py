"""`emmy eval groupings` and the structural lines of a run's end, over a database of a real search on a fake GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.application import main
from engine.cli.grouping_report import launch_rows, programs_with_groupings
from engine.cli.programs import programs_of
from engine.cli.structure import structure_lines, structure_object
from engine.cli.winner import what_decided
from engine.events import Event
from engine.ir import GraphBuilder, TensorSpec
from engine.ir.extern import arguments_to_json
from engine.snapshot import GroupingRow, Snapshot, apply
from engine.store import Store
from tests.tune.fake_device import FakeDevice
from tests.tune.rig import linear_gelu_program, program_of, tune_with


def leave(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["eval", *arguments])
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event]]:
    path = tmp_path_factory.mktemp("tuned") / "t.db"
    events: list[Event] = []
    tune_with(path, FakeDevice(), linear_gelu_program(), events=events)
    return path, events


def row(sum_us: float | None, assembled_us: float | None = None, pdl_us: float | None = None) -> GroupingRow:
    return GroupingRow("g", (), (), (), sum_us=sum_us, assembled_us=assembled_us, pdl_us=pdl_us)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([row(4.0)], ""),
        ([row(4.0, 4.4)], "grouping 1: the smallest sum, and the fastest graph"),
        (
            [row(4.0, 4.4, 4.2)],
            "grouping 1: the smallest sum, and the fastest graph, with programmatic dependent launch",
        ),
        (
            [row(4.0, 4.6), row(4.1, 4.2)],
            "grouping 2: the assembled graph made it the fastest (its sum is 4.10 us, that of grouping 1 4.00 us)",
        ),
        (
            [row(4.0, 4.4, 4.4), row(4.1, 4.5, 4.3)],
            "grouping 2: programmatic dependent launch made it the fastest"
            " (its sum is 4.10 us, that of grouping 1 4.00 us)",
        ),
        ([row(None), row(4.0, None, 4.2)], "grouping 2: the smallest sum, and the fastest graph, with programmatic"),
    ],
)
def test_what_decided(rows: list[GroupingRow], sentence: str) -> None:
    found = what_decided(rows)
    assert found.startswith(sentence)
    assert bool(found) == bool(sentence)


def test_the_table_and_the_graph_of_the_best(
    tuned: tuple[Path, list[Event]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("groupings", "--db", str(tuned[0])) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "linear+gelu on Fake GPU"
    assert "0 left untried (every grouping was tried)" in lines[1]
    assert " ".join(lines[2].split()) == "no sum us assembled us pdl us gap % launches kernels decisions"
    assert any("FUSE_EPILOGUE_0=fused" in line for line in lines[3:])
    best = lines.index(next(line for line in lines if "launch by launch" in line))
    assert lines[best + 1].split() == ["no", "kernel", "us", "reads", "results"]
    assert lines[-1].split()[-2:] == ["output", "0"]


def test_json_holds_all_of_it(tuned: tuple[Path, list[Event]], capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("groupings", "--db", str(tuned[0]), "--program", "gelu", "--json") == 0
    (program,) = json.loads(capsys.readouterr().out)
    assert (program["entered"], program["failed"], program["untried"]) == (len(program["groupings"]), 0, 0)
    (chosen,) = [one for one in program["groupings"] if one["chosen"]]
    times = [us for one in program["groupings"] for us in (one["assembled_us"], one["pdl_us"]) if us is not None]
    assert min(times) in (chosen["assembled_us"], chosen["pdl_us"])
    assert len(program["graph"]) == sum(kernel["count"] for kernel in chosen["kernels"])
    assert program["graph"][0]["reads"]
    assert program["graph"][-1]["results"] == ["output 0"]


def test_a_program_that_is_not_there_is_bad_input(
    tuned: tuple[Path, list[Event]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("groupings", "--db", str(tuned[0]), "--program", "resnet", "--json") == 2
    seen = capsys.readouterr()
    assert seen.out.strip() == "[]"
    assert "matches 'resnet'" in seen.err


def test_a_later_launch_names_the_launch_it_reads(tuned: tuple[Path, list[Event]]) -> None:
    with Store.open(tuned[0], read_only=True) as store:
        (program,) = programs_with_groupings(store)
        assert program.explored is not None
        apart = next(one for one in program.rows if one.launches > 1)
        assert apart.decisions == ("FUSE_EPILOGUE_0=apart",)
        plan = store.recorded_groupings(program.run)[apart.number - 1].grouping
        launches = launch_rows(plan, store.program(program.run).graph, {})
    assert "#1" in launches[1].reads
    assert (launches[0].results, launches[1].results) == ((), ("output 0",))


def test_the_end_of_a_run_says_how_far_the_search_got_and_what_won(tuned: tuple[Path, list[Event]]) -> None:
    snapshot = Snapshot()
    for event in tuned[1]:
        apply(snapshot, event)
    (program,) = programs_of(snapshot)
    text = "\n".join(structure_lines(program, None, replayed=False))
    assert f"groupings  {len(program.groupings)} entered, 0 left untried (every grouping was tried)" in text
    entry = structure_object(program)
    assert entry["untried_exact"] is True
    assert entry["entered"] == len(program.groupings)
    assert "0 of those recorded left untried" in "\n".join(structure_lines(program, None, replayed=True))


def test_a_library_call_is_named(tmp_path: Path) -> None:
    b = GraphBuilder()
    spec = TensorSpec.contiguous((4, 8), "float32")
    summed = b.extern("aten.cumsum.default", (b.input(spec),), arguments_to_json([{"tensor": 0}, 1], {}), spec)
    snapshot = Snapshot()
    events: list[Event] = []
    finished = tune_with(tmp_path / "t.db", FakeDevice(), program_of(b.build(b.add("exp", summed))), events=events)
    for event in events:
        apply(snapshot, event)
    assert finished.sum_us is not None
    assert finished.assembled_us is not None
    (program,) = programs_of(snapshot)
    text = "\n".join(structure_lines(program, None, replayed=False))
    assert "library    not generated, run as the library call they are: cumsum" in text
    assert "us with plain launches" in text
