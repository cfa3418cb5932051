"""`screen_cost` without a GPU: its rounds over a paced device, what it prints, and what it says of failures."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from pathlib import Path

import pytest

from engine.deploy.place import has_driver
from tests.bench import screen_cost
from tests.bench.screen_cost_programs import Program, RunFailed, Screen, has_ended, run_command
from tests.bench.screen_cost_report import report, report_commands
from tests.bench.screen_cost_rounds import Arrival, Cpu, Round, read_round
from tests.bench.screen_cost_statistics import order
from tests.tune.fake_device import FakeDevice
from tests.tune.rig import matmul_program, tune_with

NOWHERE = Program("a matmul", "fake:0")


def paced(run_s: float, **changes: object) -> list[str]:
    return ["tests.bench.screen_cost_paced", json.dumps({"run_s": run_s, "changes": changes})]


def rounds(turns: int, on_takes: float = 1.0) -> list[Round]:
    """Each of 300 candidates takes 10 ms, 8 of them in the benchmark process; with the screen so many times that."""
    found = []
    for number, on in enumerate(order(turns)):
        step = 0.010 * (on_takes if on else 1.0) * (1 + 0.001 * math.sin(number))
        keys = [("k", str(schedule), "ranking") for schedule in range(300)]
        arrivals = tuple(Arrival(1 + step * place, key, 0.008) for place, key in enumerate(keys))
        cpu = Cpu(4.0, 0.9 if on else 0.8, 0.16 if on else 0.02)
        found.append(Round(on, 0.0, arrivals[-1].at + 1, arrivals, dict.fromkeys(keys, 10.0), 0, cpu))
    return found


def test_one_tuner_runs_with_the_screen_and_without_in_turns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = screen_cost.run_rounds(NOWHERE, 15.0, tmp_path / "rounds", engine=paced(0.001, limit=40))
    assert len(found) >= 2
    assert [one.on for one in found] == order(len(found) // 2)
    for one in found:
        assert one.candidates == 40
        assert one.cpu is not None
        assert one.cpu.process_s > 0
        assert one.began < one.arrivals[0].at < one.arrivals[-1].at <= one.ended
    with_screen, without = (sum(one.cpu.screen_s for one in found if one.cpu and one.on is on) for on in (True, False))
    assert with_screen > 2 * without
    report(found)
    said = capsys.readouterr().out
    assert said.count("not counted") == 1
    assert "every run timed the same schedules" in said
    assert "medians:                               agree within 1 %" in said


def test_a_device_that_is_lost_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"DeviceError: 'nothing:0' is no device to tune on"):
        screen_cost.run_rounds(Program("x", "nothing:0"), 30.0, tmp_path)


def test_a_process_that_dies_is_a_sentence_with_its_last_words(tmp_path: Path) -> None:
    dying = [sys.executable, "-c", "print('no such thing'); raise SystemExit(3)"]
    with pytest.raises(RunFailed, match="ended with 3 and said: no such thing"):
        screen_cost.run_rounds(NOWHERE, 5.0, tmp_path, dying)


def test_no_time_for_a_pair_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="give more --seconds"):
        screen_cost.run_rounds(NOWHERE, 1.0, tmp_path, engine=paced(0.001, limit=5))


def test_no_effect_is_agreement_within_a_percent(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(rounds(8)) == 0
    said = capsys.readouterr().out
    assert "throughput with the screen on and off: agree within 1 %\n" in said
    assert "what the tuner's process does of it:   agree within 1 %\n" in said
    assert "medians:                               agree within 1 %\n" in said
    assert "4.00 % and 0.50 % of a core, more by 3.50 [3.50, 3.50]" in said
    assert "22.50 % and 20.00 % of a core, more by 2.50" in said


def test_a_screen_that_costs_three_percent_is_told_and_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(rounds(8, on_takes=1.03)) == 1
    said = capsys.readouterr().out
    assert "throughput with the screen on and off: DIFFER by more than 1 %" in said
    assert "what the tuner's process does of it:   DIFFER by more than 1 %" in said


def test_what_the_benchmark_process_loses_is_not_the_tuners(capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        one
        if not one.on
        else dataclasses.replace(
            one, arrivals=tuple(dataclasses.replace(each, run_s=each.run_s + 0.0003) for each in one.arrivals)
        )
        for one in rounds(8, on_takes=1.03)
    ]
    assert report(found) == 1
    said = capsys.readouterr().out
    assert "throughput with the screen on and off: DIFFER" in said
    assert "what the tuner's process does of it:   agree within 1 %\n" in said


def test_few_whole_commands_have_plain_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    report_commands([dataclasses.replace(one, cpu=None) for one in rounds(2)])
    said = capsys.readouterr().out
    assert "times of 300 schedules, ranking" in said
    assert "1.0000 [1.0000, 1.0000]" in said


def test_a_round_is_read_from_its_database(tmp_path: Path) -> None:
    path = tmp_path / "a" / "tune.db"
    path.parent.mkdir()
    assert not has_ended(path)
    device = FakeDevice()
    finished = tune_with(path, device, matmul_program())
    assert has_ended(path)
    found = read_round(path, on=True)
    launched = {(kernel, schedule, str(regime)) for kernel, schedule, regime in device.launches}
    assert {one.key for one in found.arrivals} == launched
    assert finished.measured == len(device.launches)
    assert set(found.medians) == launched
    assert found.rate > found.whole_rate > 0


def test_a_run_that_was_stopped_is_no_round(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "tune.db"
    tune_with(path, FakeDevice(), matmul_program())
    with sqlite3.connect(path) as database:
        database.execute("UPDATE run SET state = 'stopped'")
    with pytest.raises(ValueError, match="ended as stopped"):
        read_round(path, on=False)


def test_q_is_pressed_again_where_it_was_answered_with_a_question() -> None:
    asks = "import sys, tty; tty.setcbreak(0); print('sure?', flush=True); sys.stdin.read(2); sys.exit(7)"
    screen = Screen([sys.executable, "-c", asks])
    try:
        assert screen.status is None
        screen.spend(1.0)
        assert screen.leave() == 7
        assert screen.status == 7
        assert "sure?" in screen.last_words
    finally:
        screen.close()


@pytest.mark.skipif(has_driver(), reason="there is a GPU to tune on")
@pytest.mark.parametrize("on", [False, True])
def test_a_command_that_refuses_is_a_sentence(tmp_path: Path, on: bool) -> None:
    with pytest.raises(RunFailed, match=r"ended with 2 and said: .*"):
        run_command(Program("torch.zeros(4).sum()", "cuda:0"), tmp_path / "run", on=on)


def test_without_a_gpu_it_ends_with_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(screen_cost, "has_driver", lambda: False)
    monkeypatch.setattr(sys, "argv", ["screen_cost"])
    assert screen_cost.main() == 2
    assert "needs a GPU" in capsys.readouterr().err
