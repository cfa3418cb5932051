"""Deployments in Triton's interpreter: a program, since Triton decides at import whether it interprets.

`python -m tests.deploy.interpreted PART DATABASE ...` (of models: their kinds) prints one JSON object: what each part
found.
"""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch
import torch.nn.functional as F
from torch import nn
from torch._dynamo.utils import counters

import engine
from engine.capture.target import TargetOptions
from engine.deploy import NoEvidenceError
from engine.deploy.backend import CompiledCall, TrainingError, emmy_backend
from engine.deploy.deployment import UnfollowedPinError
from engine.store import StoreError
from tests.capture.composites import list_composites_once
from tests.deploy.gradients import gradients
from tests.deploy.hearing import told
from tests.deploy.held import cached, changed_held, sizes

torch.set_num_threads(1)
list_composites_once()
torch.manual_seed(0)  # a sum of random numbers may lie so near to 0 that rounding is all there is


def off(found: torch.Tensor, wanted: torch.Tensor) -> float:
    assert (found.shape, found.dtype, found.stride()) == (wanted.shape, wanted.dtype, wanted.stride())
    return float((found.double() - wanted.double()).norm() / wanted.double().norm())


class Linear(nn.Module):
    """The program of the database, whose weights are the module's own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32, 16))
        self.bias = nn.Parameter(torch.randn(32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(F.linear(x, self.weight, self.bias))


def raised(kind: type[Exception], work: Callable[[], Any]) -> str:
    try:
        work()
    except kind as error:
        return str(error)
    return ""


def facts(call: CompiledCall) -> dict[str, Any]:
    (chosen,) = call.deployments
    return {
        "us": chosen.us,
        "predicted": chosen.predicted,
        "forks": [(item.fork, item.answer, item.source.value) for item in chosen.forks],
        "schedules": [schedule.key for schedule in chosen.schedules.values()],
    }


def recorded(database: str) -> dict[str, Any]:
    """The recorded program as a function, as a module, and as what torch.compile makes of the module."""
    x, module = torch.randn(8, 16), Linear().eval()
    with torch.no_grad():
        function = engine.compile(lambda a, w, b: F.gelu(F.linear(a, w, b)), db=database)
        wanted = module(x)
        errors = [off(function(x, module.weight, module.bias), wanted)]
        compiled = engine.compile(module, (x,), db=database)
        errors.append(off(compiled(x), wanted))
        calls: list[CompiledCall] = []
        errors.append(off(torch.compile(module, backend=noting(calls, database))(x), wanted))
    return {"errors": errors, "ways": [facts(call) for call in (function.call, compiled.call, *calls)]}


def pinned(database: str) -> dict[str, Any]:
    """The recorded program, of which the database pins a kernel to what can't be built: now, when called, and by
    torch.compile."""
    x, module = torch.randn(8, 16), Linear().eval()
    ways = [
        lambda: engine.compile(module, (x,), db=database),
        lambda: engine.compile(module, db=database)(x),
        lambda: torch.compile(module, backend=noting([], database))(x),
    ]
    with torch.no_grad():
        return {"said": [raised(UnfollowedPinError, way) for way in ways]}


def noting(calls: list[CompiledCall], database: str = "") -> Callable[..., Any]:
    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        made = emmy_backend(module, inputs, options={"db": database} if database else None)
        calls.append(made.call)
        return made

    return backend


def guards(database: str) -> dict[str, Any]:
    """What a call guards on, what it refuses, and what it leaves to eager."""
    module, x = Linear().eval(), torch.randn(8, 16)
    found: dict[str, Any] = {}
    compiled = engine.compile(module)
    found["training"] = raised(TrainingError, lambda: compiled(x))
    found["strict"] = raised(NoEvidenceError, lambda: engine.compile(torch.sin, (x,), strict_evidence=True))
    found["no_database"] = raised(StoreError, lambda: engine.compile(torch.sin, db=f"{database}.none"))
    with torch.no_grad():
        found["keys"] = list(compiled.state_dict()) == list(module.state_dict())
        found["parameters"] = [name for name, _ in compiled.named_parameters()]
        errors = [off(compiled(x), module(x))]
        with torch.inference_mode():
            errors.append(off(compiled(torch.randn(8, 16)), module(torch.randn(8, 16))) * 0)
        builds = [compiled.call.builds]
        for other in (torch.randn(9, 16), torch.randn(16, 8).t(), torch.randn(200)[8:136].view(8, 16)):
            errors.append(off(compiled(other), module(other)))
            errors.append(off(compiled(other), module(other)))
            builds.append(compiled.call.builds)
        module.weight.mul_(2.0)
        errors.append(off(compiled(x), module(x)))
        module.bias = nn.Parameter(torch.randn(32))
        errors.append(off(compiled(x), module(x)))
        compiled.to(torch.float64)
        double = x.double()
        errors.append(off(compiled(double), module(double)))
        found |= {"errors": errors, "builds": builds}
        found |= returned(x)
        found["rows"] = rows_out_of_range()
        found["eager"] = left_to_eager(x)
    return found


def returned(x: torch.Tensor) -> dict[str, Any]:
    """Several outputs, some of which are the input or views of it, and values that are no tensors."""
    several = engine.compile(
        lambda a, s: {"sum": a * s + a, "same": a, "turned": a.t()[1:], "rest": [a.sum(), 3, None]}
    )
    one = several(x, 2.0)
    again = several(x, 3.0)
    return {
        "outputs": [off(one["sum"], x * 3), off(again["sum"], x * 4), off(one["rest"][0], x.sum())],
        "aliases": [one["same"] is x, one["turned"].data_ptr() == x.t()[1:].data_ptr()],
        "rest": one["rest"][1:],
        "apart": one["sum"].data_ptr() != again["sum"].data_ptr(),
        "values_build": several.call.builds,
    }


def rows_out_of_range() -> list[bool]:
    """Of a table that lies among NaN, rows at indices that it hasn't: each is one of its own, counted around."""
    around = torch.full((40, 4), math.nan)
    table = around[13:24]
    table.copy_(torch.randn(11, 4))
    compiled = engine.compile(lambda index: F.embedding(index, table) * 2.0)
    compiled(torch.tensor([0, 3, 10]))
    wrong = [torch.tensor([11, -1, -12]), torch.tensor([2**63 - 1, -(2**63), 2**31])]
    return [torch.equal(compiled(index), table[torch.remainder(index, 11)] * 2.0) for index in wrong]


def left_to_eager(x: torch.Tensor) -> list[list[Any]]:
    """For each call: is the result eager's, and what was said, over two calls."""

    def in_place(a: torch.Tensor) -> torch.Tensor:
        return a.add_(1.0) * 2.0

    rows = []
    first, second = torch.zeros(3, 3), torch.zeros(3, 3)
    call = engine.compile(in_place)
    (_, said), done = told(lambda: (call(first), call(first))), (in_place(second), in_place(second))
    rows.append([torch.equal(first, second) and done is not None, said])
    functions: list[Callable[[torch.Tensor], torch.Tensor]] = [
        *(lambda a: a[a > 0].sum(), lambda a: a + torch.rand_like(a) * 0.0, torch.special.bessel_j0),
        lambda a: torch.cond(a.sum() > 0, lambda b: b * 2.0, lambda b: b - 1.0, (a,)),
        lambda a: a + 0.0 * time.perf_counter(),
    ]
    for function in functions:
        made = engine.compile(function)
        results, said = told(lambda made=made: (made(x), made(x)))
        rows.append([all(torch.allclose(result, function(x)) for result in results), said])
    return rows


class Counting(nn.Module):
    """Changes itself: a step, and a position in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0
        self.register_buffer("kept", torch.zeros(8, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept[self.step] = x[0]
        self.step += 1
        return x * self.step + self.kept.sum(0)


class Stepping(nn.Module):
    step = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.step += 1
        return x * self.step


def changes(database: str) -> dict[str, Any]:
    """What changes between calls, or in them: `right` says that each call did what one eager call does."""
    del database
    with torch.no_grad():
        return {"between": changed_between(), "alone": changed_alone(), "held": changed_held(), "cached": cached()} | {
            "autocast": autocasts(),
            "copies": copied(),
            "sizes": sizes(),
            "gradients": gradients(),
        }


def changed_between() -> dict[str, Any]:
    x, module = torch.randn(8, 16), nn.Sequential(nn.Linear(16, 16), nn.ReLU()).eval()
    compiled = engine.compile(module, (x,))
    errors = [off(compiled(x), module(x))]
    module[0] = nn.Linear(16, 16)
    errors.append(off(compiled(x), module(x)))
    hook = module[0].register_forward_hook(lambda _, __, out: out * 3.0)
    errors.append(off(compiled(x), module(x)))
    hook.remove()
    errors.append(off(compiled(x), module(x)))
    factor = 2.0

    def scaled(a: torch.Tensor) -> torch.Tensor:
        return a * factor

    call = engine.compile(scaled)
    errors.append(off(call(x), x * 2.0))
    factor = 5.0
    errors.append(off(call(x), x * 5.0))
    return {"errors": errors, "builds": [compiled.call.builds, call.call.builds]}


def changed_alone() -> list[list[Any]]:
    x = torch.randn(8, 16)
    norm = nn.BatchNorm1d(16).train().requires_grad_(False)
    rows = []
    for module in (Counting(), Stepping(), norm):
        other = copy.deepcopy(module)
        compiled, _ = told(lambda module=module: engine.compile(module))
        results, said = told(lambda compiled=compiled: [compiled(x) for _ in range(3)])
        wanted = [other(x) for _ in range(3)]
        right = all(torch.allclose(a, b) for a, b in zip(results, wanted, strict=True))
        same = all(torch.equal(a, b) for a, b in zip(module.buffers(), other.buffers(), strict=True))
        rows.append([right and same and getattr(module, "step", 0) == getattr(other, "step", 0), said])
    z = torch.zeros(4)
    _, said = told(lambda: engine.compile(lambda t: t.add_(1.0), (z,)))
    rows.append([bool((z == 0).all()), said])
    return rows


def autocasts() -> dict[str, Any]:
    x, module = torch.randn(8, 16), Linear().eval()
    compiled = engine.compile(module)
    errors = [off(compiled(x), module(x))]
    with torch.autocast("cpu", torch.bfloat16):
        inside, wanted = compiled(x), module(x)
    errors.append(off(compiled(x), module(x)))
    return {"errors": errors, "dtypes": [str(inside.dtype), str(wanted.dtype)], "inside": off(inside, wanted)}


def copied() -> dict[str, Any]:
    x, module = torch.randn(8, 16), Linear().eval()
    compiled = engine.compile(module, (x,))
    other = copy.deepcopy(compiled)
    builds = [compiled.call.builds, other.call.builds]
    module.weight.mul_(2.0)
    error = off(other(x), other.original(x))
    apart = not torch.allclose(other(x), compiled(x))
    return {
        "builds": builds,
        "error": error,
        "apart": apart,
        "pickle": raised(pickle.PicklingError, lambda: pickle.dumps(compiled)),
    }


def lengths(database: str) -> dict[str, Any]:
    """A loop over three lengths, twice: with shapes that torch.compile makes symbolic, and with fixed ones."""
    found: dict[str, Any] = {}
    for dynamic in (None, False):
        torch._dynamo.reset()
        counters.clear()
        calls: list[CompiledCall] = []
        module = Linear().eval()
        compiled = torch.compile(module, backend=noting(calls), dynamic=dynamic)
        errors = []
        with torch.no_grad():
            for length in (5, 6, 7, 5, 6, 7) if dynamic is False else (5, 5, 6, 6, 7, 5, 6, 7):
                x = torch.randn(length, 16)
                errors.append(off(compiled(x), module(x)))
        graphs = counters["stats"]["unique_graphs"]
        found[str(dynamic)] = {"builds": sum(call.builds for call in calls), "graphs": graphs, "errors": errors}
    return found


def models(kinds: str) -> dict[str, Any]:
    """Kinds of models that ship, small, whole, by torch.compile and by engine.compile."""
    from transformers import AutoModel

    from engine.capture.models import model_inputs
    from tests.capture.models import configuration

    found: dict[str, Any] = {}
    for kind in kinds.split(","):
        torch._dynamo.reset()
        counters.clear()
        torch.manual_seed(0)
        one_layer = configuration(kind)
        for name in ("num_hidden_layers", "encoder_layers", "n_layer"):
            if hasattr(one_layer, name):
                setattr(one_layer, name, 1)
        if getattr(one_layer, "layer_types", None):
            one_layer.layer_types = one_layer.layer_types[:1]
        model: Any = AutoModel.from_config(one_layer, dtype=torch.float32)
        model = (model.get_encoder() if kind == "whisper" else model).eval()
        model.config.use_cache = False
        calls: list[CompiledCall] = []
        with torch.no_grad():
            inputs = {name: _drawn(x) for name, x in model_inputs(model, TargetOptions(None, "float32", 8, 1)).items()}
            wanted = model(**inputs)[0]
            outputs, said = told(lambda: torch.compile(model, backend=noting(calls))(**inputs))  # noqa: B023
            direct, said_directly = told(lambda: engine.compile(model)(**inputs))  # noqa: B023
        found[kind] = {
            "error": max(off(outputs[0], wanted), off(direct[0], wanted)),
            "graphs": counters["stats"]["unique_graphs"],
            "breaks": dict(counters["graph_break"]),
            "deployed": sum(len(call.deployments) for call in calls),
            "said": said + said_directly,
        }
    return found


def _drawn(x: torch.Tensor) -> torch.Tensor:
    return torch.randn_like(x) if x.is_floating_point() else torch.randint_like(x, 0, 2)


if __name__ == "__main__":
    parts = {
        "recorded": recorded,
        "pinned": pinned,
        "guards": guards,
        "lengths": lengths,
        "changes": changes,
        "models": models,
    }
    asked = zip(sys.argv[1::2], sys.argv[2::2], strict=True)
    print(json.dumps({part: parts[part](about) for part, about in asked}))
