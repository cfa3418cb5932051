"""ptxas controls on a real GPU, from a search to what runs: with a real ptxas and files, which nobody ships.

EMMY_TEST_PTXAS names a ptxas that takes controls, EMMY_TEST_ACF a folder of files for it; without both this is skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import engine
from engine.codegen import acf_of
from engine.deploy.deployment import PinnedControlsError
from engine.events import Compared, ControlsChecked, Logged
from engine.session import TuningSession
from engine.store import Store
from engine.tune import ControlsRequest, Settings
from engine.vocabulary import Schedule, Verdict

PTXAS, FILES = (Path(os.environ.get(name, "")) for name in ("EMMY_TEST_PTXAS", "EMMY_TEST_ACF"))
pytestmark = [
    pytest.mark.skipif(not (PTXAS.is_file() and FILES.is_dir()), reason="needs a ptxas and controls files"),
    pytest.mark.timeout(590),
]
CODE = "torch.softmax(torch.randn({rows}, 2048, dtype=torch.bfloat16), -1)"


def tune(path: Path, rows: int, *, shared: bool = False) -> None:
    request = ControlsRequest((FILES,), PTXAS, after=not shared, shared=shared)
    code = CODE.format(rows=rows)
    with TuningSession.tune(code, database=path, settings=Settings(patience=4), controls=request) as session:
        session.start()
        assert session.wait(400)
        assert session.failure is None


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("controls") / "t.db"
    tune(path, 4096)
    return path


def softmax(x: torch.Tensor) -> torch.Tensor:
    return F.softmax(x, -1)


def operand(rows: int = 4096) -> torch.Tensor:
    return torch.randn(rows, 2048, device="cuda", dtype=torch.bfloat16)


def test_the_canary_is_green_and_the_control_within_the_noise(tuned: Path) -> None:
    with Store.open(tuned, read_only=True) as store:
        events = list(store.events_of(store.runs()[-1].id))
    checked = next(event for event in events if isinstance(event, ControlsChecked))
    assert checked.on, checked.reason
    assert checked.slowdown > 1.2
    for event in events:
        if isinstance(event, Compared) and event.control_verdict:
            assert event.control_verdict == Verdict.WITHIN_NOISE
        if isinstance(event, Logged):
            print(event.text)


def test_a_pinned_file_is_built_here_and_refused_without_its_ptxas(
    tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "pinned.db"
    copy.write_bytes(tuned.read_bytes())
    with Store.open(copy) as store:
        run = store.runs()[-1]
        pins: dict[str, Schedule] = {}
        for kernel in store.kernels():
            tried = [one for one in store.schedules(kernel.key, run.context_key) if acf_of(one)]
            right = [one for one in tried if (found := store.ranking(kernel.key, one, run.context_key)) and found.us]
            if right:
                pins[kernel.key] = right[0]
                store.record_pin(kernel.key, right[0], run.context_key, author="test")
        assert pins, "no controls file could be timed"
    compiled = engine.compile(softmax, (operand(),), db=copy, ptxas=PTXAS)
    (chosen,) = compiled.call.deployments
    assert {key: pins[key] for key in chosen.schedules} == chosen.schedules
    assert chosen.controls is not None
    assert chosen.controls.assembler.path == str(PTXAS.absolute())
    x = operand()
    assert torch.allclose(compiled(x).float(), softmax(x).float(), rtol=2e-2, atol=1e-3)
    monkeypatch.setattr("engine.deploy.controls.candidates", lambda: iter(()))
    with pytest.raises(PinnedControlsError, match="is pinned with ptxas controls, and the ptxas"):
        engine.compile(softmax, (operand(),), db=copy)
    plain = engine.compile(softmax, (operand(),), db=tuned)
    assert all(not acf_of(schedule) for one in plain.call.deployments for schedule in one.schedules.values())


def test_one_file_is_looked_for_over_two_shapes(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    tune(path, 4096, shared=True)
    tune(path, 8192, shared=True)
    with Store.open(path, read_only=True) as store:
        said = [event.text for event in store.events_of(store.runs()[-1].id) if isinstance(event, Logged)]
    told = [text for text in said if "shapes" in text]
    assert told, said
    print("\n".join(told))
