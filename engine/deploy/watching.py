"""What a captured function holds, watched between calls: a weight that was exchanged or moved makes a capture stale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True, slots=True)
class Watch:
    """Where each parameter and buffer was, by the dictionary that holds it, and its address then."""

    places: tuple[tuple[dict[str, Any], str, torch.Tensor, int], ...] = ()
    constants: tuple[tuple[torch.Tensor, int], ...] = ()

    @classmethod
    def of(cls, function: Callable[..., Any], held: Sequence[torch.Tensor]) -> Watch:
        """Of a module every parameter and buffer; of another function the tensors that it was captured with."""
        if not isinstance(function, nn.Module):
            return cls(constants=tuple((tensor, tensor.data_ptr()) for tensor in held))
        places = []
        for module in function.modules():
            for kept in (module._parameters, module._buffers):
                places += [(kept, n, tensor, tensor.data_ptr()) for n, tensor in kept.items() if tensor is not None]
        return cls(tuple(places))

    def changed(self) -> bool:
        """Whether something was exchanged, or lies elsewhere."""
        return any(kept.get(name) is not t or t.data_ptr() != address for kept, name, t, address in self.places) or any(
            tensor.data_ptr() != address for tensor, address in self.constants
        )
