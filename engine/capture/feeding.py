"""A module or function with the arguments it is fed: the tensors among them become inputs, the rest stays as it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from engine.capture.meta import OnMeta

CALLED = "_called"
"""The name under which a fed module is a part of its call; no label says it."""


def part_name(target: str | None) -> str:
    """What the user calls a part of the function: its name in the call, without CALLED."""
    return str(target).removeprefix(f"{CALLED}.")


@dataclass(frozen=True, slots=True)
class Feed:
    """Arguments taken apart: `tensors` with a label each, and how they and the other leaves are put together."""

    tensors: tuple[torch.Tensor, ...]
    labels: tuple[str, ...]
    leaves: tuple[Any, ...]
    structure: Any

    @classmethod
    def of(cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Feed:
        """A tensor's label is its parameter's name, with a number where a parameter holds several."""
        labels = [label for name, value in _arguments(function, args, kwargs) for label in _labels(name, value)]
        leaves, structure = pytree.tree_flatten((args, kwargs))
        tensors = tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))
        return cls(tensors, tuple(labels), tuple(leaves), structure)

    def named(self) -> dict[str, tuple[str, torch.Tensor]]:
        """Label and tensor by the name that torch.export gives the placeholder."""
        pairs = zip(self.labels, self.tensors, strict=True)
        return {f"tensors_{i}": pair for i, pair in enumerate(pairs)}

    def refilled(self, tensors: tuple[torch.Tensor, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with other tensors; a tensor that stands for several of them is one object again."""
        first: dict[int, torch.Tensor] = {}
        rest = iter([first.setdefault(id(own), new) for own, new in zip(self.tensors, tensors, strict=True)])
        leaves = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return args, kwargs


class Fed(nn.Module):
    """The call of tensors alone; its results are the tensors among what the function returns, in order."""

    def __init__(self, function: Callable[..., Any], feed: Feed, devices: list[str] | None = None) -> None:
        super().__init__()
        self.feed = feed
        self._devices = [] if devices is None else devices
        self._called = function

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args, kwargs = self.feed.refilled(tensors)
        with OnMeta(self._devices):
            returned = self._called(*args, **kwargs)
        return tuple(leaf for leaf in pytree.tree_leaves(returned) if isinstance(leaf, torch.Tensor))


def _arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """Each argument with its parameter's name, in the order in which they are flattened."""
    called = function.forward if isinstance(function, nn.Module) else function
    try:
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [plain[i] if i < len(plain) else f"x{i}" for i in range(len(args))]
    return [*zip(names, args, strict=True), *kwargs.items()]


def _labels(name: str, value: Any) -> list[str]:
    tensors = [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    if isinstance(value, torch.Tensor):
        return [name]
    return [f"{name}.{i}" for i in range(len(tensors))]
