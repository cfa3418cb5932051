from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.store import NotResults, read_results
from engine.store.importing import ForeignResults
from engine.store.importing.results import knob_value
from engine.vocabulary import FailureKind, Schedule
from tests.store.importing.files import POINTS, cache, t4, written

KINDS = [None, None, FailureKind.RUNTIME_ERROR, FailureKind.COMPILE_ERROR, FailureKind.ILLEGAL]


def kinds(results: ForeignResults) -> list[FailureKind | None]:
    return [row.failure.kind if row.failure else None for row in results.rows]


@pytest.mark.parametrize("name", ["cache.json", "cache.json.gz", "anything"])
def test_a_cache(tmp_path: Path, name: str) -> None:
    found = read_results(written(tmp_path / name, cache()))
    assert (found.kernel.label, found.kernel.shape_text, found.context.gpu) == ("stencil", "128x64", "NVIDIA RTX A4000")
    assert found.kernel.family == "foreign"
    assert kinds(found) == KINDS
    first = found.rows[0]
    assert first.schedule == Schedule.of({"block": 16, "unroll": True, "ratio": "0.5", "layout": "NHWC"})
    assert first.timing is not None
    assert (first.timing.median_us, first.timing.samples) == (2000.0, (2000.0, 2200.0))
    assert (first.build.compile_s, first.run_s, first.at) == (0.892, 0.19, pytest.approx(1703238828.691683))


@pytest.mark.parametrize(("unit", "us"), [("miliseconds", 1e3), ("seconds", 1e6), ("us", 1.0), ("", 1e3)])
def test_t4(tmp_path: Path, unit: str, us: float) -> None:
    found = read_results(written(tmp_path / "stencil_T4.json.gz", t4(unit)))
    assert (found.kernel.label, found.context.gpu, found.origin) == ("stencil_T4", "unrecorded GPU", "T4")
    assert kinds(found) == KINDS
    assert [row.timing.median_us if row.timing else None for row in found.rows] == [2 * us, 1.5 * us, None, None, None]


def test_the_caller_can_name_kernel_and_gpu(tmp_path: Path) -> None:
    path = written(tmp_path / "x.json", t4())
    assert read_results(path, "stencil").kernel.label == "stencil"
    assert read_results(path, gpu="H200").context.gpu == "H200"
    assert read_results(written(tmp_path / "y.json", cache()), "mine", "H200").kernel.label == "mine"


def test_a_time_without_a_measurement_is_the_mean_of_the_launches(tmp_path: Path) -> None:
    document = t4()
    document["results"][0]["measurements"] = []
    first = read_results(written(tmp_path / "x.json", document)).rows[0]
    assert first.timing is not None
    assert first.timing.median_us == pytest.approx(2100.0)


@pytest.mark.parametrize(
    ("time", "kind"),
    [
        (0.0, FailureKind.IMPOSSIBLE_TIME),
        (-1.0, FailureKind.IMPOSSIBLE_TIME),
        (1e-320, FailureKind.IMPOSSIBLE_TIME),
        (5e-324, FailureKind.IMPOSSIBLE_TIME),
        (10**400, FailureKind.RUNTIME_ERROR),
        (1e20, FailureKind.RUNTIME_ERROR),
        (float("nan"), FailureKind.RUNTIME_ERROR),
        (float("inf"), FailureKind.RUNTIME_ERROR),
        ("SomethingElse", FailureKind.RUNTIME_ERROR),
    ],
)
def test_what_is_no_time_is_a_failure(tmp_path: Path, time: object, kind: FailureKind) -> None:
    document = cache()
    next(iter(document["cache"].values()))["time"] = time
    assert kinds(read_results(written(tmp_path / "x.json", document)))[0] == kind


def test_a_point_counts_once_and_a_time_stays(tmp_path: Path) -> None:
    document = t4()
    failed, ok = document["results"][2], document["results"][0]
    document["results"] += [{**failed, **{key: ok[key] for key in ("times", "invalidity", "measurements")}}]
    document["results"] += [{**ok, "measurements": [{"name": "time", "value": 9.0}]}]
    found = read_results(written(tmp_path / "x.json", document))
    assert len(found.rows) == len(POINTS)
    assert kinds(found)[2] is None
    assert found.rows[0].timing is not None
    assert found.rows[0].timing.median_us == 2000.0


def entry(document: dict[str, Any]) -> dict[str, Any]:
    """The first point."""
    first: dict[str, Any] = document["results"][0] if "results" in document else next(iter(document["cache"].values()))
    return first


def empty(document: dict[str, Any]) -> None:
    document["cache"] = {}


def a_list(document: dict[str, Any]) -> None:
    document["cache"] = []


def no_time(document: dict[str, Any]) -> None:
    del entry(document)["time"]


def null_time(document: dict[str, Any]) -> None:
    entry(document)["time"] = None


def no_parameter(document: dict[str, Any]) -> None:
    del entry(document)["block"]


def no_object(document: dict[str, Any]) -> None:
    document["cache"]["x"] = 3


def bad_name(document: dict[str, Any]) -> None:
    document["tune_params_keys"].append("a\nb")
    for one in document["cache"].values():
        one["a\nb"] = 1


def unknown_unit(document: dict[str, Any]) -> None:
    entry(document)["measurements"][0]["unit"] = "fortnight"


def no_configuration(document: dict[str, Any]) -> None:
    entry(document)["configuration"] = [1]


def correct_without_time(document: dict[str, Any]) -> None:
    entry(document).update(measurements=[], times={})


def ill_typed(document: dict[str, Any]) -> None:
    entry(document)["measurements"] = 7


BREAK_CACHE = (empty, a_list, no_time, null_time, no_parameter, no_object, bad_name)
BREAK_T4 = (unknown_unit, no_configuration, correct_without_time, ill_typed)


@pytest.mark.parametrize("damage", [*BREAK_CACHE, *BREAK_T4])
def test_a_bad_file_is_one_sentence(tmp_path: Path, damage: Callable[[dict[str, Any]], None]) -> None:
    document = t4() if damage in BREAK_T4 else cache()
    damage(document)
    path = written(tmp_path / "bad.json", document)
    with pytest.raises(NotResults) as refused:
        read_results(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("data", [b"", b"{", b"nonsense", b"\xff\xfe", b"[]", b"3", b'{"a": 1}', b"[" * 100_000])
def test_what_is_no_results_file_is_one_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    with pytest.raises(NotResults, match=r"bad\.json"):
        read_results(path)


def test_a_cut_off_file_is_named_so(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole.json", cache()).read_bytes()
    cut, packed = tmp_path / "cut.json", tmp_path / "cut.json.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    packed.write_bytes(gzip.compress(whole)[:-20])
    with pytest.raises(NotResults, match=r"cut\.json is no complete JSON"):
        read_results(cut)
    with pytest.raises(NotResults, match="cut off gzip file"):
        read_results(packed)
    with pytest.raises(NotResults, match="there is no file"):
        read_results(tmp_path / "missing")
    with pytest.raises(NotResults, match="is a folder: name a file of"):
        read_results(tmp_path)
    cut.write_text('{"us": NaN12}')
    with pytest.raises(NotResults, match="NaN in line 1 is no number there"):
        read_results(cut)
    cut.write_text('{\n"gpu": "a\\q", "more": 1}')
    with pytest.raises(NotResults, match=r"is no JSON text: line 2, column 10 can't be read \(invalid .escape\);"):
        read_results(cut)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists))
def test_knob_values_keep_what_they_say(value: object) -> None:
    kept = knob_value(value)
    assert isinstance(kept, int | str)
    assert kept == value if isinstance(value, int | str) else json.loads(str(kept)) == value
