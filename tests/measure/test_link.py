"""Once a benchmark process had to be replaced, a spare stands by: it takes over at once and dies with the rest."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.measure import CudaDevice
from engine.measure.begun import Begun
from engine.measure.health import NOBODY, WorkerState
from engine.measure.link import MOST_SPARES, SPARE, WatchLimits, WorkerLink
from engine.measure.process import Nursery
from engine.vocabulary import FailureKind, Measurement, Regime, Status
from tests.measure.rig import ROOT, a_kernel, an_engine, do, open_fake, processes_about, script, settled, until

KERNEL = a_kernel()
MAIN = (
    "import sys; from engine.measure.child_side import open_channel; from engine.measure.channel import ChannelClosed\n"
)


def measure(device: CudaDevice, what: str, number: int = 0) -> Measurement:
    return device.submit(KERNEL, do(what, number), Regime.RANKING).result(timeout=30)


def standing(device: CudaDevice) -> list[WorkerState]:
    return [one for one in device.health().workers if one.step == SPARE]


def working(device: CudaDevice) -> int:
    return next(one.pid for one in device.health().workers if one.step != SPARE)


def spare_of(device: CudaDevice) -> int:
    """The next spare's process id, once it has opened the GPU."""
    until(lambda: standing(device) and not device._link.preparing)
    spare = standing(device)[0]
    assert (spare.device, spare.candidate) == ("cuda:0", NOBODY)
    return spare.pid


@pytest.fixture(params=[(), script("fake_stem")], ids=["alone", "stem"])
def device(request: pytest.FixtureRequest) -> Iterator[CudaDevice]:
    with open_fake(stem_command=request.param) as opened:
        yield opened


def test_there_is_no_spare_before_a_process_was_lost(device: CudaDevice) -> None:
    assert measure(device, "run-wrong").failure is not None
    assert measure(device, "fine").us == 10.0
    assert len(device.health().workers) == 1


@pytest.mark.parametrize("fault", ["run-abort", "run-hang", "run-illegal"])
def test_the_spare_takes_over_and_another_stands_by(device: CudaDevice, fault: str) -> None:
    measure(device, fault)
    assert measure(device, "fine").us == 10.0
    spare = spare_of(device)
    assert device.health().respawns == 1
    measure(device, fault, 1)
    assert measure(device, "fine", 1).us == 10.0
    assert working(device) == spare
    assert spare_of(device) != spare
    health = device.health()
    assert (health.respawns, len(health.respawned)) == (2, 2)


@pytest.mark.parametrize("device", [()], indirect=True)
def test_many_losses_in_a_row_have_more_stand_by_and_no_more_than_that(
    device: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where each imports for itself: each lost one is replaced, the next is ready, and the others only import."""
    monkeypatch.setattr("engine.measure.link.LATELY_S", 600.0)
    for number in range(2 * MOST_SPARES):
        assert measure(device, "run-abort", number).failure is not None
        assert len(standing(device)) <= min(number + 1, MOST_SPARES)
    assert len(standing(device)) == MOST_SPARES
    assert measure(device, "fine").us == 10.0
    spare_of(device)
    assert [one.pending for one in device._link._spares] == [False, True, True]
    assert device.health().respawns == 2 * MOST_SPARES


def test_a_spare_that_is_killed_costs_nothing(device: CudaDevice) -> None:
    measure(device, "run-abort")
    measure(device, "fine")
    at_work = working(device)
    os.kill(spare_of(device), signal.SIGKILL)
    until(lambda: measure(device, "fine", 1).status is Status.OK and not standing(device))
    assert (working(device), device.health().respawns) == (at_work, 1)
    failure = measure(device, "run-abort", 1).failure
    assert failure is not None
    assert failure.kind is FailureKind.CRASH
    assert measure(device, "fine", 2).status is Status.OK
    assert device.health().respawns == 2
    assert spare_of(device) != working(device)


def test_worker_and_spare_killed_together_cost_one_candidate(device: CudaDevice) -> None:
    measure(device, "run-abort")
    measure(device, "fine")
    spare_of(device)
    both = [one.pid for one in device.health().workers]
    assert len(both) == 2
    answer = device.submit(KERNEL, do("run-hang"), Regime.RANKING)
    until(lambda: any(one.step == "first launch" for one in device.health().workers))
    for pid in reversed(both):
        os.kill(pid, signal.SIGKILL)
    assert answer.result(30).failure is not None
    assert measure(device, "fine", 1).status is Status.OK
    assert working(device) not in both
    assert device.health().respawns == 2


def test_a_fresh_process_that_is_wanted_is_the_spare(device: CudaDevice) -> None:
    schedules = [do("fine"), do("fine", 1)]
    assert device.compare(KERNEL, schedules, fresh=True).windows
    spare = spare_of(device)
    assert device.compare(KERNEL, schedules, fresh=True).windows
    assert working(device) == spare
    assert (device.health().respawns, device.health().respawned) == (0, ())


def test_a_close_leaves_no_spare() -> None:
    with open_fake() as device:
        folder = device._nursery.folder
        measure(device, "run-abort")
        spare = spare_of(device)
        assert spare in processes_about(folder)
    assert settled(folder)
    assert not folder.exists()
    assert device.health().workers == ()


def test_a_close_while_the_spare_begins_leaves_nothing() -> None:
    device = open_fake()
    folder = device._nursery.folder
    measure(device, "run-abort")
    device.close()
    assert settled(folder)


@pytest.mark.parametrize("stem", [(), script("fake_stem")], ids=["alone", "stem"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_dead_engine_leaves_no_spare(tmp_path: Path, number: signal.Signals, stem: tuple[str, ...]) -> None:
    engine, (name,) = an_engine(
        tmp_path,
        f"device = open_fake(stem_command={stem!r})\n"
        "device.submit(a_kernel(), do('run-abort'), Regime.RANKING).result()\n"
        "while device._link.preparing:\n"
        "    time.sleep(0.01)\n"
        "print(device._nursery.folder, flush=True)\n",
    )
    folder = Path(name)
    assert len(processes_about(folder)) >= 2
    engine.send_signal(number)
    engine.wait()
    assert settled(folder)
    until(lambda: not folder.exists())


def scripted(body: str) -> tuple[str, ...]:
    """A benchmark process that does what `body` says, with `channel` open."""
    head = f"import sys, os, time; sys.path.insert(0, {str(ROOT)!r})\n{MAIN}"
    return (sys.executable, "-c", f"{head}channel = open_channel(*map(int, sys.argv[1:4]))\n{body}")


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    opened = Nursery()
    yield opened
    opened.close()


def test_the_gpu_is_opened_when_told_to_and_waited_for(nursery: Nursery) -> None:
    opens = "time.sleep(0.3)\nchannel.send({'context': 1})\ntime.sleep(99)"
    body = f"channel.send({{'ready': True}})\nchannel.receive()\n{opens}"
    begun = Begun(nursery.start(scripted(body), "one"), {"device": 0})
    until(lambda: begun.settled(0.0) and begun._ready)
    assert (begun.pending, begun.opening) == (True, False)
    begun.prepare()
    assert begun.opening
    assert begun.settled(10.0)
    assert (begun.pending, begun.opening) == (False, False)
    assert begun.hello(0.0) == {"context": 1}
    nursery.bury(begun.child)


def test_one_that_still_imports_is_told_nothing(nursery: Nursery) -> None:
    begun = Begun(nursery.start(scripted("time.sleep(99)"), "one"), {"device": 0})
    begun.prepare()
    assert (begun.pending, begun.opening, begun.settled(0.0)) == (True, False, True)
    with pytest.raises(TimeoutError):
        begun.hello(0.05)
    nursery.bury(begun.child)


@pytest.mark.parametrize(
    "said", ["channel.send({'unusable': 'no memory is left'})", "os._exit(1)", "time.sleep(99)"], ids=str.split
)
def test_a_spare_that_cannot_open_the_gpu_is_let_go(nursery: Nursery, said: str, tmp_path: Path) -> None:
    """With memory short, the first process works and the second finds no room: that is no error of the run's."""
    flag = tmp_path / "short"
    body = (
        "channel.send({'ready': True})\nchannel.receive()\n"
        f"if os.path.exists({str(flag)!r}):\n    {said}\n"
        "channel.send({'context': 1})\n"
        "while True:\n"
        "    request = channel.receive()\n"
        "    if request.get('die'):\n        channel.send({'step': 'load', 'limit_s': 9})\n        os._exit(3)\n"
        "    channel.send({'id': 0, 'pid': os.getpid()})\n"
    )
    link = WorkerLink(nursery, scripted(body), 0, WatchLimits(begin_s=0.5, start_s=20.0))
    first = link.ask({})["pid"]
    assert "failure" in link.ask({"die": True})
    flag.touch()
    (spare,) = link._spares
    until(lambda: link.prepare() or spare.opening or not spare.pending)
    link._settle_spares()
    assert not link._spares
    flag.unlink()
    assert link.ask({})["pid"] not in (first, spare.child.pid)
    assert link.starts == 2
    link.stop()


def test_a_process_that_was_gone_before_it_began_is_not_the_candidates_doing(nursery: Nursery, tmp_path: Path) -> None:
    """A process that was killed lives on for a moment: it may be taken for one that works, and die when it is asked."""
    flag = tmp_path / "doomed"
    flag.touch()
    body = (
        "channel.send({'ready': True})\nchannel.receive()\nchannel.send({'context': 1})\n"
        "while True:\n"
        "    request = channel.receive()\n"
        f"    if request.get('always') or os.path.exists({str(flag)!r}):\n"
        f"        os.path.exists({str(flag)!r}) and os.unlink({str(flag)!r})\n        os._exit(3)\n"
        "    channel.send({'id': 0, 'pid': os.getpid()})\n"
    )
    link = WorkerLink(nursery, scripted(body), 0, WatchLimits())
    assert link.ask({})["id"] == 0
    assert (link.starts, link.renewals, link.respawned) == (2, 1, ())
    assert "failure" in link.ask({"always": True})
    assert len(link.respawned) == 1
    link.stop()


def test_a_stopped_link_begins_no_spare(nursery: Nursery) -> None:
    link = WorkerLink(nursery, script("fake_worker"), 0, WatchLimits())
    link.start()
    link.interrupt()
    link._begin_spares()
    assert len(link.states) == 1
    link.stop()
    assert link.states == ()
