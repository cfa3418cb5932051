"""Whether code that is captured reads what a capture would freeze: values of tensors, and what only a real one says.

torch.export follows tensors that hold no values, but a tensor that the code holds is a real one to it: what `.item()`,
`float()` or `alpha=` read of it would stay in the graph whatever the tensor is later. And of an argument's stand-in
some questions have another answer than of the argument itself: whether it is a view, or an inference tensor. Of an op
that is implemented in Python what its code computes would stay, whatever else that code reads later.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import CodeType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from engine.capture.errors import UnsupportedOpError
from engine.capture.leaving import kept_inside

VALUE_TEXT = (
    "It reads the value of a tensor in Python (.item(), float() or a number made of it), which kernels can't follow."
)
_READ_OPS = frozenset({"aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero"})
_READS = frozenset(
    {
        *("item", "tolist", "numpy", "__array__", "__float__", "__int__", "__bool__", "__index__", "__complex__"),
        *("__repr__", "__str__", "__format__", "__contains__", "__reduce_ex__", "equal", "allclose", "is_nonzero"),
    }
)
_MAKES = frozenset({"tensor", "as_tensor", "asarray", "new_tensor"})
"""What copies numbers out of tensors in a list, without an operation for it."""
_ASKS = frozenset(
    {
        *("_version", "_base", "grad", "grad_fn", "retains_grad", "is_inference", "_is_view", "untyped_storage"),
        *("storage", "data_ptr", "is_shared", "is_pinned", "const_data_ptr", "mutable_data_ptr"),
    }
)
_ASKS_OF_GRADIENTS = frozenset({"requires_grad", "is_leaf"})
_VERSION_OP = "prims::_tensor_version"
"""What torch.compile makes of the question for a tensor's `_version`."""
_INLINED = "/CompositeImplicitAutograd"
"""How torch calls the implementation of an op that is other ops, and that torch.export therefore looks through."""
_STANCE = threading.RLock()
"""torch has one stance for all threads: two that change it at once could leave each other's behind."""


class Reading:
    """What was read in the blocks of `noted`, in words; "" if nothing was."""

    def __init__(
        self, wants_gradients: bool, stops_effects: bool = True, cached: frozenset[CodeType] = frozenset()
    ) -> None:
        self.problem = ""
        self._cached = cached
        self._stops_effects = stops_effects
        self._asks = _ASKS | (_ASKS_OF_GRADIENTS if wants_gradients else frozenset())

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Notice what code in the block reads. Raises UnsupportedOpError for torch.cond and its like, and Leaves.

        torch compiles nothing in it: under a mode it would skip the code, and go on skipping it for good.
        """
        inside = kept_inside(self._cached) if self._stops_effects else nullcontext()
        with _STANCE, torch.compiler.set_stance("force_eager"), _Operations(self), _Functions(self), inside:
            yield

    def operation(self, name: str) -> None:
        """Notice a call of an op, by its whole name."""
        if name in _READ_OPS:
            self.problem = self.problem or VALUE_TEXT

    def op_of_a_library(self, name: str) -> None:
        """Notice that an op is called as such, by its whole name: `torch.ops.library.op`."""
        if name == _VERSION_OP:
            self.problem = self.problem or _asks_text("_version")
        elif _is_python(name):
            self.problem = self.problem or f"It calls the op {name}, whose Python code can't be followed."

    def function(self, name: str, args: tuple[Any, ...], caller: str) -> None:
        """Notice a call of a function of torch's, or that an attribute of a tensor is asked for."""
        if name in _READS or (name in _MAKES and _holds_tensors(args)):
            self.problem = self.problem or VALUE_TEXT
        elif name in self._asks and caller.partition(".")[0] != "torch":
            self.problem = self.problem or _asks_text(name)


def _asks_text(name: str) -> str:
    return f"It asks a tensor for its {name}, which is another while it is captured."


def _is_python(name: str) -> bool:
    """Whether torch.library was given Python code that an op is made of."""
    start = name.replace("::", "/")
    known = (key for key in torch.library._impls if key.endswith(_INLINED))
    return any(key.removesuffix(_INLINED).partition(".")[0] == start for key in known)


def _holds_tensors(args: tuple[Any, ...]) -> bool:
    listed = [arg for arg in args if isinstance(arg, list | tuple)]
    return any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(listed))


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    supports_higher_order_operators = True

    def __init__(self, reading: Reading) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._reading = reading

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not isinstance(func, torch._ops.OpOverload):
            raise UnsupportedOpError(
                f"It uses {func.name()}, which takes code as its argument: no kernel is generated for that."
            )
        self._reading.operation(func._schema.name)
        return func(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    def __init__(self, reading: Reading) -> None:
        super().__init__()
        self._reading = reading

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "__get__":
            name = getattr(getattr(func, "__self__", None), "__name__", "")
        if isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
            whole = func._schema.name if isinstance(func, torch._ops.OpOverload) else func._qualified_op_name
            self._reading.op_of_a_library(whole)
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))
        self._reading.function(name, args, caller)
        return func(*args, **(kwargs or {}))
