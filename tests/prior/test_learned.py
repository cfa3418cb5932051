from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.prior import FeatureMatrix
from engine.prior.calibration import Calibration, calibrate, spearman
from engine.prior.learned import LEAST_ROWS, LearnedModel, fit
from engine.prior.reservoir import CheckpointError, Reservoir

NAMES = ("a", "b", "c")


def rows(count: int, seed: int = 0) -> tuple[FeatureMatrix, np.ndarray]:
    random = np.random.default_rng(seed)
    values = random.integers(1, 9, (count, 3)).astype(np.float64)
    return FeatureMatrix(values, NAMES), np.log(values[:, 0] * 4 + values[:, 1])


def filled(kernels: int = 6, each: int = 60, cap: int = 1000) -> Reservoir:
    reservoir = Reservoir(NAMES, cap=cap)
    for kernel in range(kernels):
        reservoir.offer(*rows(each, kernel), f"kernel {kernel}")
    return reservoir


def learned(matrix: FeatureMatrix, log_us: np.ndarray) -> LearnedModel:
    model = fit(matrix, log_us)
    assert model is not None
    return model


def test_it_learns_and_is_a_value() -> None:
    matrix, log_us = rows(300)
    model = learned(matrix, log_us)
    assert spearman(model.predict(rows(100, 1)[0]), rows(100, 1)[1]) > 0.97  # type: ignore[operator]
    again = learned(matrix, log_us)
    assert again.version == model.version
    assert (again.predict(matrix) == model.predict(matrix)).all()
    other = model.refit(*rows(200, 2))
    assert other.version != model.version
    assert model.predict(matrix).tolist() == again.predict(matrix).tolist()


def test_it_is_bounded_and_takes_what_is_undecided() -> None:
    matrix, log_us = rows(300)
    model = learned(matrix, log_us)
    wild = FeatureMatrix(np.array([[1e300, -1e300, 0], [np.nan] * 3, [np.inf, -np.inf, 1]]), NAMES)
    predicted = model.predict(wild)
    assert np.isfinite(predicted).all()
    assert predicted.min() >= log_us.min() - 0.5
    assert predicted.max() <= log_us.max() + 0.5
    fewer = model.predict(FeatureMatrix(matrix.values[:, [1, 0]], ("b", "a")))
    assert fewer.shape == (300,)


@pytest.mark.parametrize(
    ("values", "log_us"),
    [
        (np.ones((50, 3)), np.linspace(0, 1, 50)),
        (np.ones((1, 3)), np.array([2.0])),
        (rows(50)[0].values, np.full(50, 3.0)),
        (np.full((40, 3), np.nan), np.linspace(0, 1, 40)),
        (rows(LEAST_ROWS - 1)[0].values, rows(LEAST_ROWS - 1)[1]),
    ],
    ids=["constant features", "one row", "equal labels", "all undecided", "few rows"],
)
def test_rows_that_teach_nothing_do_no_harm(values: np.ndarray, log_us: np.ndarray) -> None:
    model = learned(FeatureMatrix(values, NAMES), log_us)
    assert model.predict(rows(5)[0]) == pytest.approx(np.full(5, log_us.mean()), abs=0.6)
    assert model.predict(FeatureMatrix(np.empty((0, 3)), NAMES)).shape == (0,)


def test_failures_alone_leave_the_model_as_it_is() -> None:
    matrix, log_us = rows(50)
    assert fit(matrix, np.full(50, np.nan)) is None
    model = learned(matrix, log_us)
    assert model.refit(matrix, np.full(50, np.inf)) is model


def test_the_reservoir_keeps_each_row_with_equal_chance_however_it_is_batched() -> None:
    whole, parts = Reservoir(("n",), cap=100), Reservoir(("n",), cap=100)
    numbers = np.arange(1000.0)
    whole.offer(FeatureMatrix(numbers[:, None], ("n",)), numbers, "k")
    for part in np.array_split(numbers, 7):
        parts.offer(FeatureMatrix(part[:, None], ("n",)), part, "k")
    assert (len(whole), whole.seen) == (100, 1000)
    assert whole.log_us.tolist() == parts.log_us.tolist() == whole.matrix.values[:, 0].tolist()
    assert abs(whole.log_us.mean() - 499.5) < 4 * 289 / 10


def test_failures_are_no_rows_and_columns_go_by_name() -> None:
    reservoir = Reservoir(NAMES)
    reservoir.offer(FeatureMatrix(np.array([[1.0, 2.0], [3.0, 4.0]]), ("c", "x")), np.array([0.5, np.nan]), "k" * 99)
    assert (len(reservoir), reservoir.seen, len(reservoir.groups[0])) == (1, 1, 64)
    assert np.array_equal(reservoir.matrix.values, [[np.nan, np.nan, 1.0]], equal_nan=True)


def test_a_checkpoint_comes_back_and_goes_on_alike(tmp_path: Path) -> None:
    reservoir = filled(cap=100)
    reservoir.save(tmp_path / "deep" / "prior.npz")
    again = Reservoir.load(tmp_path / "deep" / "prior.npz")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["prior.npz"]
    for one in (reservoir, again):
        one.offer(*rows(200, 9), "later")
    assert (again.names, again.seen, again.groups.tolist()) == (
        reservoir.names,
        reservoir.seen,
        reservoir.groups.tolist(),
    )
    assert np.array_equal(again.matrix.values, reservoir.matrix.values)
    assert calibrate(again) == calibrate(reservoir)


def stored(path: Path, **changes: object) -> Path:
    filled(2, 10).save(path)
    with np.load(path) as found:
        fields = {name: found[name] for name in found.files}
    np.savez(path, **{**fields, **{name: np.array(value) for name, value in changes.items()}})
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "emmy-reservoir-9"},
        {"values": np.ones((20, 2))},
        {"values": np.full((20, 3), np.inf)},
        {"log_us": np.full(20, np.nan)},
        {"log_us": np.zeros((20, 1))},
        {"seen": 3},
        {"seen": "many"},
        {"cap": 0, "seen": 0},
        {"names": 7},
        {"groups": np.zeros(20)},
        {"values": np.array([{}] * 20, dtype=object)},
    ],
    ids=lambda changes: "+".join(changes),
)
def test_a_foreign_or_damaged_checkpoint_is_one_sentence(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(CheckpointError, match="the cold model answers") as refused:
        Reservoir.load(stored(tmp_path / "prior.npz", **changes))
    assert "\n" not in str(refused.value)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 4000), st.integers(0, 255))
def test_any_damaged_byte_is_refused_or_harmless(tmp_path_factory: pytest.TempPathFactory, at: int, byte: int) -> None:
    path = tmp_path_factory.mktemp("checkpoint") / "prior.npz"
    filled(2, 10).save(path)
    data = bytearray(path.read_bytes())
    data[at % len(data)] = byte
    for damaged in (bytes(data), bytes(data[: at % len(data)])):
        path.write_bytes(damaged)
        with suppress(CheckpointError):
            assert np.isfinite(Reservoir.load(path).log_us).all()


def test_no_file_no_folder_no_room(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(CheckpointError):
            Reservoir.load(path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="can't be written"):
        Reservoir(NAMES).save(tmp_path / "file" / "prior.npz")


def test_calibration_trusts_what_ranks_unseen_kernels() -> None:
    found = calibrate(filled())
    assert found.trusted
    assert found.kernels == 6
    noise = Reservoir(NAMES)
    for kernel in range(6):
        noise.offer(rows(40, kernel)[0], np.random.default_rng(kernel).normal(size=40), f"kernel {kernel}")
    assert not calibrate(noise).trusted


@pytest.mark.parametrize("reservoir", [Reservoir(NAMES), filled(1), filled(3, 2)], ids=["empty", "one kernel", "tiny"])
def test_what_cannot_be_measured_is_quarantined(reservoir: Reservoir) -> None:
    found = calibrate(reservoir)
    assert (found.spearman, found.trusted, "quarantined" in found.reason) == (None, False, True)
    assert not Calibration(0.49, 3, "").trusted


def test_spearman() -> None:
    up = np.arange(5.0)
    assert spearman(up, up**3) == pytest.approx(1.0)
    assert spearman(up, -up) == pytest.approx(-1.0)
    assert spearman(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(0.8660254)
    assert spearman(up, np.ones(5)) is None
    assert spearman(np.ones(5), up) == 0.0
    assert spearman(up[:1], up[:1]) is None


@pytest.mark.slow
def test_a_full_reservoir_is_refitted_in_reasonable_time(capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    names = tuple(f"f{i}" for i in range(50))
    values = random.integers(0, 32, (100_000, 50)).astype(np.float64)
    reservoir = Reservoir(names)
    reservoir.offer(FeatureMatrix(values, names), np.log1p(values[:, 0] * values[:, 1]), "k")
    began = time.perf_counter()
    model = learned(reservoir.matrix, reservoir.log_us)
    with capsys.disabled():
        print(f"\nrefit of {len(reservoir):,} rows of 50 features: {time.perf_counter() - began:.1f} s")
    assert model.rows == 100_000
