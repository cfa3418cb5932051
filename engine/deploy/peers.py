"""Who a deployed program is compared with: torch eager and torch.compile, on the whole call and on a kernel's body."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from engine.capture.binding import BoundCall
from engine.ir.graph import Graph
from engine.runtime import Launch, evaluate

Function = Callable[..., Any]

OP_BY_OP = "op by op"
TORCH_ATTENTION = "torch's attention"
"""How the body of a kernel is written for its peers."""


@dataclass(frozen=True, slots=True)
class Peer:
    """`prepare` makes of a function the one that is timed."""

    name: str
    prepare: Callable[[Function], Function]

    def of_call(self, bound: BoundCall) -> Launch:
        """The whole call. What compiles does so when it first runs."""
        function = self.prepare(bound.function)

        def launch() -> None:
            with torch.no_grad():
                function(*bound.args, **bound.kwargs)

        return launch

    def of_body(self, body: Function, inputs: Sequence[torch.Tensor]) -> Launch:
        """A kernel's body on its inputs."""
        function = self.prepare(body)

        def launch() -> None:
            with torch.no_grad():
                function(*inputs)

        return launch


def _inductor(mode: str | None) -> Callable[[Function], Function]:
    """Without CUDA graphs of its own: every peer is timed as a graph that we capture."""

    def prepare(function: Function) -> Function:
        compiled: Function = torch.compile(function, dynamic=False, mode=mode)
        return compiled

    return prepare


PEERS: Mapping[str, Peer] = MappingProxyType(
    {
        "eager": Peer("eager", lambda function: function),
        "compile": Peer("compile", _inductor(None)),
        "max-autotune": Peer("max-autotune", _inductor("max-autotune-no-cudagraphs")),
    }
)


def peer_of(name: str) -> Peer | str:
    """The peer of that name, or a sentence why there is none here. "pinned" isn't one of torch's and says so."""
    if name in PEERS:
        return PEERS[name]
    if name == "helion":
        if find_spec("helion") is None:
            return "it isn't installed (pip install helion)"
        return "it compiles kernels that are written for it, and none is written for this program"
    return "it is timed on the whole program alone" if name == "pinned" else "no such peer is known"


def eager_body(body: Graph, inputs: Sequence[torch.Tensor]) -> Function:
    """The body op by op as eager runs it, as a graph of torch calls without Python between them."""

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return evaluate(body, tensors, None)

    return traced(run, inputs)


def traced(function: Function, inputs: Sequence[torch.Tensor]) -> Function:
    """What the function calls of torch on these inputs, as a graph without Python between the calls."""
    with torch.no_grad():
        graph: Function = make_fx(function)(*inputs)
    return graph
