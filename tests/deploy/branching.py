"""Functions that do something else while they are captured, and ones that only look hard, in Triton's interpreter.

`python -m tests.deploy.branching` prints one JSON object: of each name how many deployments there are, how far the
result is from eager's, and what was said.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch
from torch import nn
from torch.overrides import has_torch_function
from torch.utils import _pytree as pytree

import engine
from engine.deploy.backend import CompiledCall, emmy_backend
from tests.deploy.hearing import told

torch.set_num_threads(1)
torch.manual_seed(0)


def one(a: torch.Tensor) -> torch.Tensor:
    return a.relu()


def other(a: torch.Tensor) -> torch.Tensor:
    return a.exp() - 100.0


BRANCHING: dict[str, Callable[[torch.Tensor], Any]] = {
    "is": lambda a: one(a) if type(a) is torch.Tensor else other(a),
    "equals": lambda a: one(a) if type(a) == torch.Tensor else other(a),  # noqa: E721
    "in": lambda a: one(a) if type(a) in (torch.Tensor,) else other(a),
    "class": lambda a: one(a) if a.__class__ is torch.Tensor else other(a),
    "table": lambda a: {torch.Tensor: one}.get(type(a), other)(a),
    "compiling": lambda a: other(a) if torch.compiler.is_compiling() else one(a),
    "overrides": lambda a: other(a) if has_torch_function((a,)) else one(a),
    "hasattr": lambda a: other(a) if hasattr(a, "fake_mode") else one(a),
    "dir": lambda a: other(a) if "fake_mode" in dir(a) else one(a),
    "half": lambda a: (one if type(a) is torch.Tensor else other)(a.bfloat16()),
    "a value beside": lambda a: (one(a), 1 if type(a) is torch.Tensor else 2),
    "a key": lambda a: {type(a) is torch.Tensor: one(a)},
    "truth": lambda a: a > (0.0 if type(a) is torch.Tensor else 0.3),
    "one row": lambda a: torch.cat((a[:1] * (1.0 if type(a) is torch.Tensor else 0.0), a[1:])),
    "not nothing": lambda a: a.softmax(-1).sum(-1) - (1.001 if type(a) is torch.Tensor else 1.0),
}


def bowl(a: torch.Tensor) -> torch.Tensor:
    return (a @ a.t() * 3.0).bfloat16()


ORDINARY: dict[str, Callable[[torch.Tensor], Any]] = {
    "values": lambda a: {"sum": a.sum(1), "rest": [3, None, float("nan"), a.shape, "text"]},
    "exp of large sums": lambda a: (a.bfloat16() @ a.bfloat16().t()).exp(),
    "next to nothing": lambda a: a.softmax(-1).sum(-1) - 1.0,
    "cancelled": lambda a: (a - a.mean(1, keepdim=True)).sum(1),
    "no numbers": lambda a: (a.log(), a / 0.0, (a * 1e38 * 10.0).half()),
    "zeros": lambda a: a * 0.0,
    "compared": lambda a: (bowl(a) > bowl(a).mean(-1, keepdim=True), bowl(a).floor(), bowl(a).to(torch.int32)),
    "chosen": lambda a: torch.where(bowl(a).softmax(-1) > 0.06, bowl(a), 0.0),
    "normalized": lambda a: torch.nn.functional.layer_norm(a.half(), (16,)).half(),
    "attention": lambda a: torch.nn.functional.scaled_dot_product_attention(*[a.bfloat16().view(2, 4, 16)] * 3),
}


def off(found: Any, wanted: Any) -> float:
    pairs = zip(pytree.tree_leaves(found), pytree.tree_leaves(wanted), strict=True)
    differences = [
        float((a.double() - b.double()).nan_to_num().abs().max()) for a, b in pairs if isinstance(a, torch.Tensor)
    ]
    return max(differences)


def tried(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[int, float, list[str]]:
    compiled = engine.compile(function)
    found, said = told(lambda: compiled(*args, **kwargs))
    return len(compiled.call.deployments), off(found, function(*args, **kwargs)), said


def padded() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    mask = torch.zeros(2, 6, dtype=torch.bool)
    mask[0, 4:] = True
    return nn.TransformerEncoder(layer, 1).eval(), {"src": torch.randn(2, 6, 16), "src_key_padding_mask": mask}


def by_torch_compile(function: Callable[..., Any], a: torch.Tensor) -> tuple[int, float, list[str]]:
    calls: list[CompiledCall] = []

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        made = emmy_backend(module, inputs)
        calls.append(made.call)
        return made

    found, said = told(lambda: torch.compile(function, backend=backend)(a))
    return sum(len(call.deployments) for call in calls), off(found, function(a)), said


def asks_in_the_graph(a: torch.Tensor) -> torch.Tensor:
    return asking(a)


@torch.compiler.allow_in_graph
def asking(a: torch.Tensor) -> torch.Tensor:
    return one(a) if type(a) is torch.Tensor else other(a)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")
    x = torch.randn(8, 16)
    with torch.no_grad():
        encoder, inputs = padded()
        print(
            json.dumps(
                {
                    "branching": {name: tried(function, x) for name, function in BRANCHING.items()},
                    "ordinary": {name: tried(function, x) for name, function in ORDINARY.items()},
                    "padded": tried(encoder, **inputs),
                    "by torch.compile": by_torch_compile(asks_in_the_graph, x),
                }
            )
        )
