"""What must be equal between two calls for one deployment to fit both, and what of a call no deployment follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from engine.deploy.guarding import State
from engine.deploy.kinds import typed


def signature(leaves: Sequence[Any], tensors: Sequence[Any], fixed: frozenset[int]) -> tuple[object, ...]:
    """All of the arguments that a kernel was generated for, and which of the tensors are one object.

    Tensors that stay in place are left out, as there are many: what runs them looks at where they lie.
    """
    skipped = {id(tensors[position]) for position in fixed}
    loose = [leaf for leaf in leaves if id(leaf) not in skipped]
    ids = [id(leaf) for leaf in loose if isinstance(leaf, torch.Tensor)]
    again = tuple(map(ids.index, ids)) if len(set(ids)) < len(ids) else ()
    return again, *(
        (*_layout(leaf), leaf.dtype, leaf.device, leaf.requires_grad) if isinstance(leaf, torch.Tensor) else typed(leaf)
        for leaf in loose
    )


def keys_of(value: Any) -> Iterator[object]:
    """Keys of dictionaries among the arguments that are no text: 1 and 1.0 are equal and compute something else."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if type(key) is not str:
                yield _typed_key(key)
            yield from keys_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            if type(item) is not torch.Tensor:
                yield from keys_of(item)


def unfollowed(state: State, tensors: Sequence[torch.Tensor], fixed: frozenset[int], learns: bool) -> str:
    """Why this call has to run in eager, in words; "": it hasn't.

    `learns` says that gradients are enabled. A capture sees another tensor than the argument, and runs without
    gradients, so code that names what differs then gets the real thing.
    """
    names = state.names
    if learns and "is_grad_enabled" in names:
        return "it asks whether gradients are enabled, and they are"
    if "is_inference_mode_enabled" in names and torch.is_inference_mode_enabled():
        return "it asks for the inference mode, and that is on"
    for position, tensor in enumerate(tensors):
        if position in fixed:
            continue
        if id(tensor) in state.ids:
            return (
                "an argument is a tensor that it holds itself, or could reach by a global, a closure or an attribute,"
                " and a capture can't tell the two apart"
            )
        if tensor.__dict__ and not names.isdisjoint(tensor.__dict__):
            return "it asks for an attribute that was set on an argument"
        if "Parameter" in names and isinstance(tensor, nn.Parameter):
            return "it tells parameters from tensors, and an argument is a parameter"
    return ""


def _typed_key(key: object) -> object:
    return tuple(map(_typed_key, key)) if type(key) is tuple else typed(key)


def _layout(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.is_conj(), tensor.is_neg()
