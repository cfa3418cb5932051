"""Nothing trades fp32 precision silently: the gate refuses tf32, and lets ieee and tf32x3 pass."""

from __future__ import annotations

from engine.codegen import offered_schedules
from engine.measure import CudaDevice
from engine.vocabulary import FailureKind, Measurement, Regime, Schedule, Status
from tests.gpu.bodies import matmul

KERNEL = matmul(512, 512, 512, "float32")


def with_precision(device: CudaDevice, precision: str, count: int) -> list[Measurement]:
    offered = [s for s in offered_schedules(KERNEL, device.target) if s["PRECISION"] in ("ieee", "tf32x3")]
    chosen = offered[:: max(1, len(offered) // count)][:count]
    schedules = [Schedule.of({**schedule.as_dict(), "PRECISION": precision}) for schedule in chosen]
    futures = [device.submit(KERNEL, schedule, Regime.DEPLOY) for schedule in schedules]
    results = [future.result(timeout=300) for future in futures]
    print(f"\n{precision}: {[(str(r.status), r.us, r.error, r.failure and r.failure.kind.value) for r in results]}")
    return results


def test_ieee_and_tf32x3_pass(lawless: CudaDevice) -> None:
    for precision in ("ieee", "tf32x3"):
        results = with_precision(lawless, precision, 8)
        ok = [r for r in results if r.status is Status.OK]
        assert ok, [str(r.failure) for r in results]
        assert all(r.failure is None or r.failure.kind is not FailureKind.WRONG_RESULT for r in results)
        assert all(r.error is not None and r.error < 2e-6 for r in ok)


def test_tf32_is_a_wrong_result(lawless: CudaDevice) -> None:
    results = with_precision(lawless, "tf32", 8)
    kinds = {r.failure.kind for r in results if r.failure}
    assert all(r.status is Status.FAILED for r in results)
    assert FailureKind.WRONG_RESULT in kinds
    assert kinds <= {FailureKind.WRONG_RESULT, FailureKind.SHARED_MEMORY}
