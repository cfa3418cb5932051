"""`engine.compile` and the backend of torch.compile, without a GPU: in Triton's interpreter, and left to eager."""

from __future__ import annotations

import os
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

import engine
from engine.capture import capture
from engine.ir.plan import Program
from engine.store import Store, copy_database
from engine.vocabulary import Schedule
from tests.deploy.changing import CHANGING
from tests.deploy.gradients import DIFFERENTIATING, ENABLING
from tests.deploy.programs import printed_by
from tests.tune.fake_device import FakeDevice
from tests.tune.rig import tune_with

ROOT = Path(__file__).parents[2]
ROUNDING = 5e-6
LIMIT_S = 280
pytestmark = pytest.mark.timeout(LIMIT_S + 20)
CODE = "F.gelu(F.linear(torch.randn(8, 16), torch.randn(32, 16), torch.randn(32)))"


def in_interpreter(**parts: Path | str) -> dict[str, Any]:
    words = [str(word) for part in parts.items() for word in part]
    return printed_by("-m", "tests.deploy.interpreted", *words, limit_s=LIMIT_S)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tuned") / "t.db"
    tune_with(path, FakeDevice(), Program(capture(CODE).graph, CODE))
    return path


def illegally_pinned(tuned: Path) -> Path:
    """A copy in which every kernel is pinned to a number of warps that no GPU has."""
    path = tuned.with_name("pinned.db")
    copy_database(tuned, path)
    with Store.open(path) as store:
        (run,) = store.runs()
        for kernel in store.kernels():
            for schedule in store.schedules(kernel.key, run.context_key)[:1]:
                wrong = Schedule.of({**schedule.as_dict(), "NUM_WARPS": 3})
                store.record_pin(kernel.key, wrong, run.context_key, author="me")
    return path


@pytest.fixture(scope="module")
def interpreted(tuned: Path) -> dict[str, Any]:
    """One process for all: loading torch's compiler takes longer than what is compiled here."""
    return in_interpreter(
        recorded=tuned,
        pinned=illegally_pinned(tuned),
        guards=tuned.with_name("guards.db"),
        lengths=tuned.with_name("lengths.db"),
        changes=tuned,
    )


def test_an_index_out_of_range_reads_nothing_outside_of_the_table(interpreted: dict[str, Any]) -> None:
    assert interpreted["guards"]["rows"] == [True, True]


def test_what_was_tuned_is_what_runs_however_it_is_called(tuned: Path, interpreted: dict[str, Any]) -> None:
    found = interpreted["recorded"]
    assert max(found["errors"]) < ROUNDING
    with Store.open(tuned, read_only=True) as store:
        (run,) = store.runs()
        rows = [row for row in store.recorded_groupings(run.id) if row.whole_us is not None]
    fastest = min(row.whole_us or 0.0 for row in rows)
    assert len(found["ways"]) == 3
    for way in found["ways"]:
        assert (way["us"], way["predicted"]) == (fastest, [])
        assert {source for _, _, source in way["forks"]} == {"assembled graph"}
        assert way["schedules"] == found["ways"][0]["schedules"]


def test_an_illegal_pin_is_refused_and_not_passed_over(interpreted: dict[str, Any]) -> None:
    said = interpreted["pinned"]["said"]
    assert len(said) == 3
    for sentence in said:
        assert "a pin decides nothing here: " in sentence
        assert "NUM_WARPS=3" in sentence


def test_a_call_is_guarded_and_what_it_cant_take_is_said(interpreted: dict[str, Any]) -> None:
    found = interpreted["guards"]
    assert max(found["errors"]) < ROUNDING
    assert found["builds"] == [1, 2, 3, 4]
    assert "doesn't train" in found["training"]
    assert "torch.no_grad()" in found["training"]
    assert "no measurement and no pin decides" in found["strict"]
    assert "there is no database at" in found["no_database"]
    assert found["keys"]
    assert found["parameters"] == ["weight", "bias"]
    assert max(found["outputs"]) < ROUNDING
    assert found["aliases"] == [True, True]
    assert found["rest"] == [3, None]
    assert found["apart"]
    assert found["values_build"] == 2
    causes = ["changes one of its arguments in place", "asks for the values of a tensor", "rand_like", "bessel_j0"]
    causes += ["It uses cond", "It asks the clock"]
    assert len(found["eager"]) == len(causes)
    for (right, said), cause in zip(found["eager"], causes, strict=True):
        assert right
        assert len(said) == 1
        assert cause in said[0]


def test_what_changes_is_captured_anew_and_a_call_acts_once(interpreted: dict[str, Any]) -> None:
    found = interpreted["changes"]
    assert max(found["between"]["errors"]) < ROUNDING
    assert found["between"]["builds"] == [3, 2]
    causes = ["changes the buffer", "changes what it holds itself (step)", "changes the buffer", "in place"]
    for (right, said), cause in zip(found["alone"], causes, strict=True):
        assert right, cause
        assert len(said) == 1
        assert cause in said[0]


def test_what_a_function_changes_in_what_it_holds_is_put_back_and_left_to_eager(interpreted: dict[str, Any]) -> None:
    assert set(interpreted["changes"]["held"]) == set(CHANGING)
    for what, (kept, right, said) in interpreted["changes"]["held"].items():
        assert kept, what
        assert right, what
        assert len(said) == 1, what
        assert "changes what it holds itself" in said[0], what


def test_a_cache_keeps_what_the_user_has_in_it(interpreted: dict[str, Any]) -> None:
    found = interpreted["changes"]["cached"]
    assert "computes what a cache of functools' keeps while it runs (table)" in found["said"][0]
    assert (found["kept"], found["size"], found["kernels"], found["real"]) == (True, 1, 1, True)
    assert found["results"] == [2.0, 2.0, 2.0, 2.0, 4.0, 3.0, 3.0]


def test_a_size_is_returned_as_one(interpreted: dict[str, Any]) -> None:
    assert all(interpreted["changes"]["sizes"])


def test_code_that_differentiates_is_right_at_once(interpreted: dict[str, Any]) -> None:
    found = interpreted["changes"]["gradients"]["differentiating"]
    assert set(found) == {f"{name}, {entry}" for name in DIFFERENTIATING for entry in ("engine", "torch")}
    for what, (right, said) in found.items():
        assert right == [True] * 3, what
        assert len(said) <= 1, what
        if what.endswith("torch"):
            assert "It differentiates inside (torch.func)" in said[0], what


def test_code_that_enables_gradients_gets_them(interpreted: dict[str, Any]) -> None:
    found = interpreted["changes"]["gradients"]["enabling"]
    assert len(found) == 2 * len(ENABLING)
    for what, (right, deployed, said) in found.items():
        assert right == [True] * 3, what
        plain = ("returned, ", "returned_detached, ", "returned_held, torch", "own_gradient, engine")
        assert (deployed, said == []) == ((1, True) if what.startswith(plain) else (0, False)), what


def test_autocast_is_followed(interpreted: dict[str, Any]) -> None:
    found = interpreted["changes"]["autocast"]
    assert max(found["errors"]) < ROUNDING
    assert found["dtypes"] == ["torch.bfloat16"] * 2
    assert found["inside"] < 1e-2


def test_a_copy_is_compiled_by_itself_and_pickling_says_what_to_do(interpreted: dict[str, Any]) -> None:
    found = interpreted["changes"]["copies"]
    assert found["builds"] == [1, 0]
    assert found["error"] < ROUNDING
    assert found["apart"]
    assert "`.original`" in found["pickle"]


def test_three_lengths_are_built_three_times_and_no_more(interpreted: dict[str, Any]) -> None:
    for way in interpreted["lengths"].values():
        assert way["builds"] == 3
        assert way["graphs"] <= 3
        assert max(way["errors"]) < ROUNDING


@pytest.mark.slow
def test_a_decoder_and_an_encoder_with_convolutions_are_one_graph_each_and_right() -> None:
    """Every shipped kind is run so on a GPU; here these two, because the interpreter is slow."""
    kinds = "qwen3,whisper"
    found = in_interpreter(models=kinds)["models"]
    assert list(found) == kinds.split(",")
    for kind, facts in found.items():
        assert (facts["graphs"], facts["breaks"], facts["deployed"], facts["said"]) == (1, {}, 1, []), kind
        assert facts["error"] < ROUNDING


def test_without_a_gpu_the_call_runs_in_eager_and_says_so_once() -> None:
    if os.environ.get("TRITON_INTERPRET") or torch.cuda.is_available():
        pytest.skip("this process can run kernels")
    call = engine.compile(torch.sin)
    x = torch.randn(4, 4)
    with pytest.warns(UserWarning, match="kernels are generated for CUDA GPUs") as warned:
        results = [call(x) for _ in range(3)]
    assert len(warned) == 1
    assert all(torch.equal(result, torch.sin(x)) for result in results)


def test_an_option_that_the_backend_has_not_is_refused() -> None:
    backend = import_module("engine.deploy.backend").emmy_backend
    graph = torch.fx.symbolic_trace(lambda a: a.sin())
    with pytest.raises(ValueError, match="has the options db, strict_evidence and ptxas, not level"):
        backend(graph, [], options={"level": 3})


def test_torch_finds_the_backend_by_its_name() -> None:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["torch_dynamo_backends"]
    module, _, name = points["emmy"].partition(":")
    assert callable(getattr(import_module(module), name))
