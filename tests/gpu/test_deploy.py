"""From a search to what runs: what was tuned is what `engine.compile`, torch.compile and `emmy run` run, and right."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._dynamo.utils import counters

pytest.importorskip("transformers")

import engine
from engine.capture.target import TargetOptions
from engine.deploy import Source
from engine.deploy.backend import CompiledCall, emmy_backend
from engine.session import TuningSession
from engine.store import Store
from engine.tune import Settings
from tests.capture.models import SMALL

CODE = (
    "F.gelu(F.linear(torch.randn(256, 512, dtype=torch.bfloat16), torch.randn(1024, 512, dtype=torch.bfloat16),"
    " torch.randn(1024, dtype=torch.bfloat16)))"
)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tuned") / "t.db"
    with TuningSession.tune(CODE, database=path, settings=Settings(patience=5)) as session:
        session.start()
        assert session.wait(300)
        assert session.failure is None
    return path


def operands() -> tuple[torch.Tensor, ...]:
    draw = {"dtype": torch.bfloat16, "device": "cuda"}
    return torch.randn(256, 512, **draw), torch.randn(1024, 512, **draw), torch.randn(1024, **draw)


def linear_gelu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.linear(x, w, b))


def off(found: torch.Tensor, wanted: torch.Tensor) -> float:
    assert (found.shape, found.dtype, found.stride()) == (wanted.shape, wanted.dtype, wanted.stride())
    return float((found.double() - wanted.double()).norm() / wanted.double().norm())


@pytest.mark.timeout(600)
def test_what_was_tuned_is_what_runs(tuned: Path) -> None:
    compiled = engine.compile(linear_gelu, operands(), db=tuned, strict_evidence=True)
    (chosen,) = compiled.call.deployments
    assert chosen.predicted == []
    with Store.open(tuned, read_only=True) as store:
        (run,) = store.runs()
        times = [row.whole_us for row in store.recorded_groupings(run.id) if row.whole_us is not None]
    assert chosen.us == min(times)
    results = []
    for _ in range(3):
        given = operands()
        results.append((compiled(*given), linear_gelu(*given)))
    assert all(off(found, wanted) < 1e-2 for found, wanted in results)  # an earlier result is not written over
    assert compiled.call.builds == 1


def test_a_pinned_schedule_is_what_is_built(tuned: Path, tmp_path: Path) -> None:
    copy = tmp_path / "pinned.db"
    copy.write_bytes(tuned.read_bytes())
    before = engine.compile(linear_gelu, operands(), db=copy).call.deployments[0]
    key = next(iter(before.schedules))
    with Store.open(copy) as store:
        kernel = store.kernel(key)
        tried = [s for s in store.schedules(key, before.context_key) if s != before.schedules[key]]
        measured = [store.ranking(kernel.key, schedule, before.context_key) for schedule in tried]
        other = next(one.schedule for one in measured if one is not None and one.us is not None)
        store.record_pin(key, other, before.context_key, author="test")
    compiled = engine.compile(linear_gelu, operands(), db=copy)
    (chosen,) = compiled.call.deployments
    assert chosen.kernels[0].chosen is not None
    assert chosen.kernels[0].chosen.source is Source.PIN
    assert chosen.schedules == {**before.schedules, key: other}
    given = operands()
    assert off(compiled(*given), linear_gelu(*given)) < 1e-2


class Block(nn.Module):
    """Weights that are prepared where that is faster: a norm's scale goes into the weight behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(256)
        self.up = nn.Linear(256, 512, bias=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = F.silu(self.up(self.norm(x)))
        return found, x.transpose(0, 1)


def test_weights_that_change_are_followed_and_views_of_inputs_stay_views() -> None:
    module = Block().to("cuda", torch.bfloat16).eval()
    compiled = engine.compile(module)
    x = torch.randn(64, 256, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        for change in (lambda: None, lambda: module.norm.weight.mul_(3.0), lambda: module.up.weight.normal_()):
            change()
            found, turned = compiled(x)
            assert off(found, module(x)[0]) < 1e-2
            assert turned.data_ptr() == x.data_ptr()
        assert compiled.call.builds == 1
        module.up.weight = nn.Parameter(torch.randn_like(module.up.weight))
        assert off(compiled(x)[0], module(x)[0]) < 1e-2
        expanded = torch.randn(1, 256, device="cuda", dtype=torch.bfloat16).expand(64, 256)
        assert off(compiled(expanded)[0], module(expanded)[0]) < 1e-2
        assert compiled.call.builds == 3


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", SMALL)
def test_every_shipped_kind_of_model_by_torch_compile(kind: str) -> None:
    from transformers import AutoModel

    from engine.capture.models import model_inputs
    from tests.capture.models import configuration

    torch._dynamo.reset()
    counters.clear()
    calls: list[CompiledCall] = []
    torch.manual_seed(0)
    model: Any = AutoModel.from_config(configuration(kind), dtype=torch.bfloat16)
    model = (model.get_encoder() if kind == "whisper" else model).cuda().eval()
    model.config.use_cache = False
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", module="torch|transformers")
        compiled = torch.compile(model, backend=noting(calls))
        for _ in range(2):
            inputs = {
                name: torch.randn_like(x) if x.is_floating_point() else torch.randint_like(x, 0, 2)
                for name, x in model_inputs(model, TargetOptions(None, "bfloat16", 16, 1)).items()
            }
            assert off(compiled(**inputs)[0], model(**inputs)[0]) < 3e-2
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
    assert [len(call.deployments) for call in calls] == [1]


def noting(calls: list[CompiledCall]) -> Callable[..., Any]:
    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        made = emmy_backend(module, inputs)
        calls.append(made.call)
        return made

    return backend


def test_three_lengths_are_built_three_times() -> None:
    torch._dynamo.reset()
    calls: list[CompiledCall] = []
    module = Block().to("cuda", torch.bfloat16).eval()
    compiled = torch.compile(module, backend=noting(calls), dynamic=False)
    with torch.no_grad():
        for length in (16, 32, 48, 16, 32, 48):
            x = torch.randn(length, 256, device="cuda", dtype=torch.bfloat16)
            assert off(compiled(x)[0], module(x)[0]) < 1e-2
    assert [call.builds for call in calls] == [1, 1, 1]


@pytest.mark.timeout(900)
def test_the_command_times_the_program_and_its_kernels_against_peers(tuned: Path) -> None:
    command = [sys.executable, "-c", "from engine.cli import main; main()", "run", "--code", CODE, "--db", str(tuned)]
    asked = [*command, "--bench", "--peers", "eager,compile,helion,pinned", "--ab", "NUM_WARPS=8", "--json"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (found,) = json.loads(done.stdout.splitlines()[-1])
    assert found["predicted"] == []
    assert set(found["whole"]["peers"]) == {"eager", "compile"}
    assert {"helion", "pinned"} <= set(found["skipped"])
    for peer in found["whole"]["peers"].values():
        assert peer["low"] <= peer["ratio"] <= peer["high"]
    assert found["whole"]["us"] == pytest.approx(found["recorded_us"], rel=0.15)
    assert found["ceilings"]["copy_gbs"] > 1000
    for kernel in found["kernels"]:
        assert {"eager", "compile"} <= set(kernel["peers"])
        assert kernel["bound"] in ("memory", "compute")
        assert kernel["times_floor"] > 0
    assert len(found["ab"]) == 1
    print("\n" + json.dumps(found["whole"]))
