"""Models outlive their process: kept beside the database, asked without scikit-learn, refused in words if spoiled."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.prior import (
    COLUMNS,
    CheckpointError,
    ColdModel,
    FeatureMatrix,
    FittedModel,
    Reservoir,
    kept_rows,
    load_models,
    models_path,
    refit,
    rows_path,
    save_models,
    shipped_rows,
    steering,
)
from engine.prior.checkpoint import KEPT
from engine.prior.trees import Trees, grow


def sample(kernels: int = 4, each: int = 60) -> Reservoir:
    """Some of the shipped rows, kernel by kernel."""
    shipped = shipped_rows()
    assert shipped is not None, "the shipped rows don't fit the features: python -m tests.bench.prior_rows"
    reservoir = Reservoir(COLUMNS)
    for group in sorted(set(shipped.groups.tolist()))[:kernels]:
        rows = np.flatnonzero(shipped.groups == group)[:each]
        reservoir.offer(FeatureMatrix(shipped.matrix.values[rows], COLUMNS), shipped.log_us[rows], group)
    return reservoir


@pytest.fixture(scope="module")
def fitted() -> FittedModel:
    found = refit(sample())
    assert found is not None
    return found


def test_a_model_comes_back_as_it_was(fitted: FittedModel, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "t.db.models.npz"
    save_models(path, [fitted])
    (again,) = load_models(path)
    rows = sample().matrix
    assert again.model.version == fitted.model.version
    assert (again.model.predict(rows) == fitted.model.predict(rows)).all()
    assert (again.calibration, again.groups) == (fitted.calibration, fitted.groups)
    assert len(again.pairs) == len(fitted.pairs) > 0
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_newest_are_kept(fitted: FittedModel, tmp_path: Path) -> None:
    many = [
        dataclasses.replace(fitted, model=dataclasses.replace(fitted.model, digest=f"{number}"))
        for number in range(KEPT + 3)
    ]
    save_models(tmp_path / "m.npz", many)
    assert [one.model.digest for one in load_models(tmp_path / "m.npz")] == [f"{n}" for n in range(3, KEPT + 3)]


def test_no_file_is_no_model(tmp_path: Path) -> None:
    assert load_models(tmp_path / "none.npz") == ()


def test_a_pipe_in_their_place_is_a_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for load in (load_models, Reservoir.load):
        with pytest.raises(CheckpointError, match="can't be read: it is a pipe or a device"):
            load(tmp_path / "pipe")


@given(place=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_spoiled_file_is_a_sentence(
    fitted: FittedModel, tmp_path_factory: pytest.TempPathFactory, place: int, byte: int, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("spoiled") / "m.npz"
    save_models(path, [fitted])
    data = bytearray(path.read_bytes())
    place %= len(data)
    data = data[:place] if cut else data
    if not cut:
        data[place] = byte
    path.write_bytes(bytes(data))
    found: tuple[FittedModel, ...] = ()
    with suppress(CheckpointError):
        found = load_models(path)
    assert all(np.isfinite(one.model.predict(sample(1, 5).matrix)).all() for one in found)


def test_another_versions_file_is_a_sentence(fitted: FittedModel, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    np.savez(path, format=np.array("emmy-models-99"), about=np.array("[]"))
    with pytest.raises(CheckpointError, match="another version"):
        load_models(path)
    save_models(path, [fitted])
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    about = json.loads(str(arrays["about"]))
    about[0]["cold"] = "cold-0 of long ago"
    np.savez(path, **{**arrays, "about": np.array(json.dumps(about))})
    with pytest.raises(CheckpointError, match="another version's cold model"):
        load_models(path)


def test_no_code_is_run(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    np.savez(path, format=np.array("emmy-models-1"), about=np.array([{"a": print}], dtype=object))
    with pytest.raises(CheckpointError, match="damaged"):
        load_models(path)


def test_trees_that_point_outside_or_in_circles_are_refused() -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(200, 3))
    trees = grow(values, values[:, 0] * 2, np.ones(200))
    for name, spoilt in (
        ("low", np.zeros_like(trees.low)),
        ("high", trees.high + 10**6),
        ("feature", np.where(trees.feature >= 0, 9, -1)),
        ("value", np.full_like(trees.value, np.nan)),
        ("roots", trees.roots - 1),
    ):
        with pytest.raises(ValueError, match="tree"):
            Trees.from_arrays(3, trees.base, {**trees.arrays(), name: spoilt})


def test_a_damaged_model_file_leaves_the_shipped_model(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    models_path(database).write_bytes(b"no models")
    found = steering(database)
    assert "damaged" in found.problem
    assert found.latest.version == steering(tmp_path / "other.db").latest.version
    alone = steering(database, shipped=False)
    assert alone.latest.version == ColdModel().version
    assert "cold model answers" in alone.problem


def test_damaged_rows_are_moved_aside_and_said(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    assert kept_rows(database) == (None, "")
    rows_path(database).write_bytes(b"no rows")
    found, said = kept_rows(database)
    assert found is None
    assert "spoiled" in said
    assert (tmp_path / "t.db.prior.npz.spoiled").read_bytes() == b"no rows"


def test_rows_of_a_version_without_a_knob_have_it_off(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    older = tuple(name for name in COLUMNS if name != "NUM_STAGES")
    before = sample(2, 10)
    kept = [COLUMNS.index(name) for name in older]
    before.with_columns(older, before.matrix.values[:, kept]).save(rows_path(database))
    found, said = kept_rows(database)
    assert (said, found is not None and found.names) == ("", COLUMNS)
    foreign = tuple("waves of old" if name == "waves" else name for name in COLUMNS)
    before.with_columns(foreign, before.matrix.values).save(rows_path(database))
    assert "another version" in kept_rows(database)[1]


def test_what_ships_is_trusted_and_needs_no_scikit_learn() -> None:
    code = (
        "import sys; from pathlib import Path; from engine.prior import steering;"
        "found = steering(Path('none.db')); print(found.problem or found.latest.version);"
        "assert 'sklearn' not in sys.modules and 'torch' not in sys.modules"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.startswith("learned-2-"), told


def test_a_full_disk_is_said_and_leaves_the_file_as_it_was(
    fitted: FittedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models, rows = tmp_path / "t.db.models.npz", tmp_path / "t.db.prior.npz"
    save_models(models, [fitted])
    sample().save(rows)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np, "savez_compressed", full)
    for save in (lambda: save_models(models, [fitted]), lambda: sample().save(rows)):
        with pytest.raises(CheckpointError, match="no space is left on its disk: free some") as refused:
            save()
        assert refused.value.is_output
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
