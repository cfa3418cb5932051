"""`emmy pin`, `unpin` and `pins` on a real database: what is kept, what is refused, and in which words."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.cli.application import main
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.store import Store
from tests.deploy.samples import HERE, OLDER, fill, matmul, schedules


def leave(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return int(left.value.code or 0)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


def test_a_pin_is_kept_with_who_when_and_why(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    best = schedules(matmul(), 1)[0]
    assert leave("pin", "matmul", "num_warps=8", "--note", "steady", "--db", str(database)) == 0
    said = capsys.readouterr().out
    assert said.startswith("pinned matmul 256x256x256 float32 to BLOCK_M=")
    with Store.open(database) as store:
        (stored,) = store.pins()
    assert stored.pin.schedule.as_dict() == {**best.as_dict(), "NUM_WARPS": 8}
    assert stored.pin.note == "steady"
    assert stored.pin.author
    assert leave("pin", "matmul", "--db", str(database)) == 0
    assert "in place of another pin" in capsys.readouterr().out
    assert leave("pins", "--db", str(database), "--json", "--history") == 0
    record = json.loads(capsys.readouterr().out)
    assert [pin["standing"] for pin in record["pins"]] == ["ok"]
    assert [pin["note"] for pin in record["ended"]] == ["steady"]
    assert [pin["stale"] for pin in record["pins"]] == [False]
    assert leave("pins", "--db", str(database), "--history") == 0
    (head,) = [line for line in capsys.readouterr().out.splitlines() if "ended pin of" in line]
    assert head.index("pinned") < head.index("ended", head.index("pinned"))
    assert leave("unpin", "matmul", "--db", str(database)) == 0
    assert leave("pins", "--db", str(database)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "nothing is pinned"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("pin", "matmul", "BLOCK_N=3"), "can't be pinned to BLOCK_M="),
        (("pin", "matmul", "COLOR=3"), "COLOR is no knob"),
        (("pin", "matmul", "fast"), "fast is no knob value"),
        (("pin", "matmul", "NUM_WARPS=1_6"), "NUM_WARPS=1_6"),
        (("pin", "matmul", "NUM_WARPS=\u0668"), "NUM_WARPS=\u0668"),
        (("pin", "matmul", "NUM_WARPS=" + "8" * 5000), "NUM_WARPS=888"),
        (("pin", "softmax"), "no kernel of"),
        (("pin", "float32"), "'float32' is 2 kernels"),
        (("pin", "matmul", "--context", "x"), "no context 'x' is recorded"),
        (("pin", "matmul", "--note", "x" * 10_001), "--note has more than"),
        (("unpin", "matmul"), "has no pin"),
        (("unpin", "matmul", "--context", "x"), "has no pin in context x"),
    ],
)
def test_what_cant_be_pinned_is_one_sentence(
    database: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    assert leave(*arguments, "--db", str(database)) == 2
    complaint = capsys.readouterr().err
    assert sentence in complaint
    assert complaint.count("\n") == 1
    with Store.open(database, read_only=True) as store:
        assert store.pins() == ()


@pytest.mark.parametrize("change", ["DELETE FROM kernel", "UPDATE kernel SET body = 'x'"])
def test_the_pin_of_a_kernel_that_is_gone_can_be_ended(
    database: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    assert leave("pin", "matmul", "--db", str(database)) == 0
    with closing(sqlite3.connect(database)) as plain:
        plain.execute(f"{change} WHERE key = ?", (matmul().key,))
        plain.commit()
    capsys.readouterr()
    assert leave("unpin", matmul().key[:10], "--db", str(database)) == 0
    assert capsys.readouterr().out == f"unpinned {matmul().key}\n"
    with Store.open(database, read_only=True) as store:
        assert store.pins() == ()


@pytest.mark.parametrize("name", ["matmul 256x256x256", "MATMUL 256x256x256 float32"])
def test_a_kernel_goes_by_the_name_that_is_shown(database: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert leave("pin", name, "NUM_WARPS=8", "--db", str(database)) == 0
    assert leave("eval", "variants", "--kernel", name, "--db", str(database)) == 0
    assert leave("unpin", name, "--db", str(database)) == 0


def test_the_whole_name_of_one_is_part_of_no_other(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = GraphBuilder()
    left, right = (
        build.input(TensorSpec.contiguous(s, "float32"), n) for s, n in (((256, 2560), "x"), ((2560, 256), "w"))
    )
    longer = Kernel("contraction", build.build(build.add("matmul", left, right)), "matmul")
    with Store.open(database) as store:
        store.record_kernel(longer)
    assert longer.shape_text == "256x256x2560 float32"
    assert leave("pin", "matmul 256x256x256", "NUM_WARPS=8", "--db", str(database)) == 0
    assert leave("pin", "matmul 256x256", "NUM_WARPS=8", "--db", str(database)) == 2
    assert "is 2 kernels" in capsys.readouterr().err


def test_a_pin_for_another_context_warns(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(database) as store:
        store.record_context(OLDER)
    schedule = str(schedules(matmul(), 1)[0]).split()
    assert leave("pin", "matmul", *schedule, "--context", OLDER.key, "--db", str(database)) == 0
    assert "with triton 3.5.0, not 3.6.0" in capsys.readouterr().err
    assert leave("pins", "--db", str(database)) == 0
    assert "other context" in capsys.readouterr().out
    assert leave("pin", "matmul", "--context", HERE.key, "--db", str(database)) == 0
    assert leave("unpin", "matmul", "--db", str(database)) == 2
    assert "pinned in 2 contexts" in capsys.readouterr().err


def test_pins_of_no_kernel_are_bad_input(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("pins", "--kernel", "softmax", "--db", str(database)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"emmy: no kernel of {database} matches 'softmax'; leave --kernel away to see them all\n"
    assert leave("pins", "--kernel", "matmul", "--db", str(database)) == 0
