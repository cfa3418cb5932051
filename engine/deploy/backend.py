"""`engine.compile` and `torch.compile(backend="emmy")`: a call that runs what was learned, and eager where it can't.

A call is taken apart into tensors and values. Each signature (shapes, strides, dtypes, devices, offsets and values) is
captured, deployed and checked once against eager, and kept. What can't be taken runs in eager from then on, and one
warning says why. Training isn't supported: a call that would need gradients is refused.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from engine.capture import CaptureError
from engine.deploy.deployment import Deployment, DeploymentError, NoEvidenceError, PinnedControlsError
from engine.deploy.execution import WeightsMoved
from engine.deploy.pinning import SilentFallbackError
from engine.deploy.signatures import Deployed, Unsuitable, deploy_call, opened
from engine.deploy.watching import Watch
from engine.runtime import BuildError, one_line
from engine.store import StoreError

SIGNATURES_LIMIT = 64
"""Signatures kept for one call. Each holds buffers and a CUDA graph, and shapes that never come again would pile up."""


class TrainingError(RuntimeError):
    """The call would need gradients."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`database` None is the user's own. With `strict_evidence` nothing runs that a prediction decides.

    `ptxas` assembles schedules with controls; None looks for the one that each was measured with.
    """

    database: Path | None = None
    strict_evidence: bool = False
    ptxas: Path | None = None


@dataclass(slots=True)
class CompiledCall:
    """A function whose calls run as deployments, one a signature. `deployments` are those in use, in order of need.

    `fixed` are positions among the tensors of a call that never change between calls.
    """

    function: Callable[..., Any]
    settings: Settings
    name: str
    fixed: frozenset[int] = frozenset()
    builds: int = 0
    _entries: dict[tuple[object, ...], Deployed | None] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)
    _watch: Watch = field(default_factory=Watch)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def deployments(self) -> list[Deployment]:
        return [entry.deployment for entry in self._entries.values() if entry is not None]

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run one call. Raises TrainingError where gradients are wanted, and what the function itself raises."""
        leaves, structure = pytree.tree_flatten((tuple(args), dict(kwargs)))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self._refuse_training(tensors)
        with torch.no_grad(), self._lock:
            if self._watch.changed():
                self._entries.clear()
            key = (_signature(leaves, tensors, self.fixed), structure, getattr(self.function, "training", None))
            for _ in range(2):
                entry = self._entry(key, args, kwargs)
                if entry is None:
                    break
                try:
                    return entry(tensors)
                except WeightsMoved:
                    del self._entries[key]
        return self.function(*args, **kwargs)

    def _entry(self, key: tuple[object, ...], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Deployed | None:
        if key not in self._entries:
            if len(self._entries) >= SIGNATURES_LIMIT:
                self._say(f"more than {SIGNATURES_LIMIT} signatures: further ones run in eager")
                return None
            self._entries[key] = self._build(args, kwargs)
        return self._entries[key]

    def _build(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Deployed | None:
        """The deployment of one signature; None, and a warning, where it runs in eager."""
        self.builds += 1
        settings = self.settings
        try:
            entry = deploy_call(
                self.function,
                tuple(args),
                dict(kwargs),
                self.fixed,
                settings.database,
                settings.strict_evidence,
                ptxas=settings.ptxas,
            )
        except (NoEvidenceError, PinnedControlsError):
            raise
        except (CaptureError, DeploymentError, StoreError, BuildError, Unsuitable) as error:
            self._say(str(error))
            return None
        except torch.OutOfMemoryError:
            self._say("the buffers of its kernels don't fit into the GPU's memory")
            return None
        except SilentFallbackError:
            raise
        except Exception as error:  # whatever it is, eager is right
            self._say(f"its kernels can't be run: {type(error).__name__}: {one_line(str(error))}")
            return None
        for note in entry.deployment.notes:
            self._warn(f"emmy runs {self.name} with less than was learned: {note}.")
        self._watch = Watch.of(self.function, entry.held)
        return entry

    def _say(self, reason: str) -> None:
        self._warn(f"emmy runs {self.name} in eager: {reason.rstrip('.')}.")

    def _warn(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            warnings.warn(sentence, stacklevel=5)

    def _refuse_training(self, tensors: Iterable[torch.Tensor]) -> None:
        if not torch.is_grad_enabled():
            return
        own = self.function.parameters() if isinstance(self.function, nn.Module) else ()
        if any(tensor.requires_grad for tensor in (*tensors, *own)):
            raise TrainingError(
                f"emmy doesn't train: {self.name} was called with gradients enabled and a tensor that requires them;"
                " call it under torch.no_grad() or torch.inference_mode()"
            )


class CompiledModule(nn.Module):
    """A module whose calls run as deployments. Its state_dict, parameters, mode and moves are those of the module."""

    def __init__(self, module: nn.Module, settings: Settings) -> None:
        super().__init__()
        object.__setattr__(self, "original", module)
        call = CompiledCall(module, settings, type(module).__name__)
        object.__setattr__(self, "call", call)
        object.__setattr__(self, "forward", _as_function(call))
        self.training = module.training

    original: nn.Module
    call: CompiledCall

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.original.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.original.load_state_dict(*args, **kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
        return self.original.named_parameters(*args, **kwargs)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Any:
        return self.original.named_buffers(*args, **kwargs)

    def named_children(self) -> Any:
        return self.original.named_children()

    def train(self, mode: bool = True) -> CompiledModule:
        self.original.train(mode)
        self.training = mode
        return self

    def _apply(self, *args: Any, **kwargs: Any) -> CompiledModule:
        apply: Any = self.original._apply
        apply(*args, **kwargs)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


def compile_callable(
    function: Callable[..., Any],
    example_inputs: Sequence[Any] | torch.Tensor | Mapping[str, Any] | None = None,
    *,
    db: str | Path | None = None,
    strict_evidence: bool = False,
    ptxas: str | Path | None = None,
) -> Any:
    """What `engine.compile` is: the module or function with its calls run by what the database knows.

    With `example_inputs` (a tensor, arguments, or a dictionary of named ones) their signature is built now. A module
    gives a module, a function a function. `ptxas` assembles schedules with controls; None looks for it.

    Raises ValueError for a ptxas that isn't there, StoreError for a database that can't be read, and, now or when it is
    called, TrainingError for gradients, NoEvidenceError where `strict_evidence` forbids what a prediction decides, and
    PinnedControlsError for a pin whose controls can't be applied here.
    """
    settings = _settings(db, strict_evidence, ptxas)
    with opened(settings.database):
        pass  # a database that can't be read is said now
    compiled: Any
    if isinstance(function, nn.Module):
        compiled = CompiledModule(function, settings)
    else:
        call = CompiledCall(function, settings, getattr(function, "__name__", type(function).__name__))

        compiled = _as_function(call)
    if example_inputs is not None:
        args, kwargs = _arguments(example_inputs)
        with torch.no_grad():
            compiled(*args, **kwargs)
    return compiled


def emmy_backend(
    module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """The backend of `torch.compile(model, backend="emmy", options={...})`: "db", "strict_evidence", "ptxas".

    Shapes are deployed as they come: of a graph with symbolic shapes each set of numbers is a signature of its own.
    Raises ValueError for an option that it hasn't.
    """
    given = dict(options or {})
    settings = _settings(given.pop("db", None), bool(given.pop("strict_evidence", False)), given.pop("ptxas", None))
    if given or mode is not None:
        unknown = ", ".join(sorted(given)) or f"mode={mode}"
        raise ValueError(f"the emmy backend has the options db, strict_evidence and ptxas, not {unknown}")
    with opened(settings.database):
        pass
    call = CompiledCall(module, settings, "the compiled graph", _fixed(module))

    made: Callable[..., Any] = _as_function(call)
    return made


def _settings(database: str | Path | None, strict: bool, ptxas: str | Path | None) -> Settings:
    """Raises ValueError for a ptxas that isn't there."""
    path = Path(ptxas) if ptxas is not None else None
    if path is not None and not path.is_file():
        raise ValueError(f"ptxas={str(path)!r} is no file: name the ptxas that controls were measured with")
    return Settings(Path(database) if database is not None else None, strict, path)


def _as_function(call: CompiledCall) -> Any:
    """A plain function that torch.compile leaves alone; `call` is its attribute."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return call(args, kwargs)

    disable: Any = torch.compiler.disable
    made = disable(run)
    made.call = call
    return made


def _fixed(module: torch.fx.GraphModule) -> frozenset[int]:
    """Positions, among the tensors that a graph is called with, of those that torch.compile says stay in place."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    tensors = [node for node in placeholders if isinstance(node.meta.get("example_value"), torch.Tensor)]
    return frozenset(i for i, node in enumerate(tensors) if _is_static(node))


def _is_static(node: torch.fx.Node) -> bool:
    marks = node.meta.get("tensor_dict") or {}
    return "_dynamo_static_input_type" in marks or isinstance(node.meta.get("example_value"), nn.Parameter)


def _arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example, Mapping):
        return (), dict(example)
    return ((example,) if isinstance(example, torch.Tensor) else tuple(example)), {}


def _signature(leaves: Sequence[Any], tensors: Sequence[Any], fixed: frozenset[int]) -> tuple[object, ...]:
    """What must be equal for a deployment to fit: all that a kernel was generated for.

    Tensors that stay in place are left out, as there are many: what runs them looks at where they lie.
    """
    skipped = {id(tensors[position]) for position in fixed}
    return tuple(
        (leaf.shape, leaf.dtype, leaf.device, leaf.stride(), leaf.storage_offset())
        if isinstance(leaf, torch.Tensor)
        else (type(leaf), leaf if isinstance(leaf, int | float | bool | str | None) else id(leaf))
        for leaf in leaves
        if id(leaf) not in skipped
    )
