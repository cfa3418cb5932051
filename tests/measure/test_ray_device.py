"""A device at an actor, with the cluster's part played here: what comes back, what is lost, how things are named."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from engine import __version__
from engine.ir.plan import Grouping
from engine.measure import Candidate, Compiling, DeviceError, DeviceHealth, PairedTimes, Respawn, WorkerState
from engine.measure.ray_actor import Hello
from engine.measure.ray_device import NUMBERS_APART, RayDevice, _knock, open_ray, ray_missing
from engine.vocabulary import Measurement, Regime, Status, Target
from tests.measure.fake_worker import CONTEXT
from tests.measure.rig import a_kernel, do

KERNEL = a_kernel()


class GoneError(Exception):
    """What the cluster raises for a lost actor; `cause` is what the device over there raised, if it did."""

    def __init__(self, text: str, cause: Exception | None = None) -> None:
        super().__init__(text)
        self.cause = cause


class Reference:
    """A call under way."""

    def __init__(self, answer: Future[Any]) -> None:
        self._answer = answer

    def future(self) -> Future[Any]:
        return self._answer


class Actor:
    """Each method's call is answered by what `answers` holds for it: a value, an error, or a future."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        actor = self

        class Method:
            @staticmethod
            def remote(*arguments: Any) -> Reference:
                actor.asked.append((name, arguments))
                answer = actor.answers[name]
                if isinstance(answer, Future):
                    return Reference(answer)
                done: Future[Any] = Future()
                if isinstance(answer, Exception):
                    done.set_exception(answer)
                else:
                    done.set_result(answer)
                return Reference(done)

        return Method


class Cluster:
    errors = GoneError

    def __init__(self) -> None:
        self.ended: list[Any] = []

    def answer(self, reference: Reference, limit_s: float) -> Any:
        return reference.future().result(timeout=limit_s)

    def end(self, actor: Any) -> None:
        self.ended.append(actor)


def opened(number: int = 3, **answers: Any) -> tuple[RayDevice, Actor, Any]:
    actor = Actor(hello=Hello(__version__, CONTEXT, Target()), **answers)
    cluster: Any = Cluster()
    device = RayDevice(cluster, actor, "10.0.0.2#1/gpu:0", number)
    assert device.greet(1e12) == ""
    return device, actor, cluster


def measurement() -> Measurement:
    return Measurement(KERNEL.key, do("fine"), Regime.RANKING, CONTEXT.key, Status.FAILED)


def test_answers_come_back_and_context_and_target_are_known() -> None:
    device, actor, _ = opened(measure=measurement())
    assert (device.context, device.target) == (CONTEXT, Target())
    assert device.submit(KERNEL, do("fine"), Regime.RANKING).result(5) == measurement()
    assert actor.asked[-1] == ("measure", (KERNEL, do("fine"), Regime.RANKING))


def test_graphs_are_compared_over_there() -> None:
    device, actor, _ = opened(compare_graphs=PairedTimes(((1.0,), (2.0,))))
    plan = Grouping((), (), ())
    assert device.compare_graphs(plan, [{}, {}], pdl=True).windows == ((1.0,), (2.0,))
    assert actor.asked[-1] == ("compare_graphs", (plan, ({}, {}), None, True))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (GoneError("the node died\nmore"), "its actor is gone: GoneError, the node died"),
        (GoneError("traceback", DeviceError("the driver is gone")), "the driver is gone"),
    ],
)
def test_a_loss_is_a_sentence(error: GoneError, sentence: str) -> None:
    device, _, _ = opened(measure=error, compare=error)
    with pytest.raises(DeviceError) as caught:
        device.submit(KERNEL, do("fine"), Regime.RANKING).result(5)
    assert str(caught.value) == sentence
    with pytest.raises(DeviceError, match=sentence.partition(",")[0]):
        device.compare(KERNEL, [do("fine")])


def test_closing_cancels_what_is_under_way_and_ends_the_actor() -> None:
    device, actor, cluster = opened(measure=Future())
    answer = device.submit(KERNEL, do("fine"), Regime.RANKING)
    device.close()
    device.close()
    assert answer.cancelled()
    assert cluster.ended == [actor]
    with pytest.raises(DeviceError, match="is closed"):
        device.submit(KERNEL, do("fine"), Regime.RANKING).result(5)
    with pytest.raises(CancelledError):
        device.compare(KERNEL, [do("fine")])


def test_what_a_machine_tells_gets_the_name_of_its_place() -> None:
    whose = Candidate(KERNEL.key, "DO=fine")
    device, actor, _ = opened(
        health=DeviceHealth(
            compiles=(Compiling(5, whose, 1.0),),
            workers=(WorkerState("cuda:0", 9, "timing", whose, 0.1),),
            respawned=(Respawn(1.0, "cuda:0", "benchmark", whose, "it hung"),),
            missing=("no NVML",),
        ),
        kill_compile=True,
    )
    health = device.health()
    assert {one.device for one in (*health.workers, *health.respawned)} == {device.name}
    assert health.missing == (f"{device.name}: no NVML",)
    (compiling,) = health.compiles
    assert compiling.number == 5 * NUMBERS_APART + 3
    assert device.kill_compile(compiling.number)
    assert actor.asked[-1] == ("kill_compile", (5,))
    assert not device.kill_compile(compiling.number + 1)


def test_a_machine_that_answers_late_is_told_as_it_was() -> None:
    device, actor, _ = opened(health=DeviceHealth(busy_s=1.0))
    assert device.health().busy_s == 1.0
    late: Future[Any] = Future()
    actor.answers["health"] = late
    assert device.health().busy_s == 1.0
    late.set_result(DeviceHealth(busy_s=2.0))
    assert device.health().busy_s == 2.0
    assert [name for name, _ in actor.asked].count("health") == 2


def test_another_version_over_there_is_refused() -> None:
    actor = Actor(hello=Hello("0.0", CONTEXT, Target()))
    cluster: Any = Cluster()
    assert "has version 0.0 of this package" in RayDevice(cluster, actor, "there", 0).greet(1e12)


@pytest.mark.parametrize("address", ["", "ray://host:10001", "host", "host:port"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.1:6379, or auto"):
        _knock(address)


@pytest.mark.skipif(not ray_missing(), reason="ray is installed here")
def test_without_ray_there_is_a_sentence() -> None:
    with pytest.raises(DeviceError, match=r"--ray can't be used: ray is not installed; pip install '\.\[cluster\]"):
        open_ray("auto", lambda name: None)  # type: ignore[arg-type, return-value]
