"""What `engine.compile` gives back: a module in the place of a module, and a function in the place of a function.

The module holds the very registries of the one that it stands for (parameters, buffers, children, and what is called
when their state is saved and loaded), so that whatever walks a parent finds what it would find there, under the same
names. Its forward hooks are its own: they run around the deployment.
"""

from __future__ import annotations

import copy
import functools
import pickle
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from engine.deploy.backend import CompiledCall

_SHARED = (
    *("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_state_dict_hooks"),
    *("_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
)
HOOKS = (
    *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks", "_forward_hooks_with_kwargs"),
    *("_forward_hooks_always_called", "_backward_pre_hooks", "_backward_hooks"),
)
"""Dictionaries of the hooks that a module runs around its forward."""

_OF_CONTAINERS = ("__len__", "__getitem__", "__setitem__", "__delitem__", "__iter__", "__contains__", "__reversed__")


class CompiledModule(nn.Module):
    """A module whose calls run as deployments. Its state, mode, children, attributes and moves are those of the module.

    `original` is that module, `call` what runs it, `make` makes such a call for a module.
    """

    def __new__(cls, module: nn.Module, make: Callable[[nn.Module], CompiledCall]) -> CompiledModule:
        """Of a class that has a container's methods exactly where the module's has: a module without them has no
        length, and is true."""
        passed = {name: _passed_on(name) for name in _OF_CONTAINERS if hasattr(type(module), name)}
        kind: Any = type(cls.__name__, (cls,), {"__module__": __name__, **passed}) if passed else cls
        made: CompiledModule = super().__new__(kind)
        return made

    def __init__(self, module: nn.Module, make: Callable[[nn.Module], CompiledCall]) -> None:
        super().__init__()
        call = make(module)
        own = {"original": module, "call": call, "make": make, "forward": uncompiled(call)}
        for name, value in own.items():
            object.__setattr__(self, name, value)
        for name in _SHARED:
            object.__setattr__(self, name, getattr(module, name))
        self.__dict__.pop("training")

    original: nn.Module
    call: CompiledCall
    make: Callable[[nn.Module], CompiledCall]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it with its own hooks. Hooks of every module run once: in the module, where there are no own ones."""
        if any(self.__dict__[name] for name in HOOKS):
            return super().__call__(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.original.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.original.load_state_dict(*args, **kwargs)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        load: Any = self.original._load_from_state_dict
        load(*args, **kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
        return self.original.named_parameters(*args, **kwargs)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Any:
        return self.original.named_buffers(*args, **kwargs)

    def named_children(self) -> Any:
        return self.original.named_children()

    def register_buffer(self, *args: Any, **kwargs: Any) -> None:
        self.original.register_buffer(*args, **kwargs)

    def register_parameter(self, *args: Any, **kwargs: Any) -> None:
        self.original.register_parameter(*args, **kwargs)

    def add_module(self, *args: Any, **kwargs: Any) -> None:
        self.original.add_module(*args, **kwargs)

    def register_module(self, *args: Any, **kwargs: Any) -> None:
        self.original.register_module(*args, **kwargs)

    def train(self, mode: bool = True) -> CompiledModule:
        self.original.train(mode)
        return self

    def apply(self, fn: Any) -> CompiledModule:
        self.original.apply(fn)
        return self

    def _apply(self, *args: Any, **kwargs: Any) -> CompiledModule:
        apply: Any = self.original._apply
        apply(*args, **kwargs)
        return self

    def __getattr__(self, name: str) -> Any:
        if "original" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.original, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """An attribute is one of the module, except those that every module has of its own."""
        if "original" not in self.__dict__ or name in self.__dict__:
            super().__setattr__(name, value)
        else:
            setattr(self.original, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(self.original, name)

    def __copy__(self) -> CompiledModule:
        copied = CompiledModule(copy.copy(self.original), self.make)
        for name in HOOKS:
            object.__setattr__(copied, name, getattr(self, name).copy())
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledModule:
        """The copied module with copied hooks, compiled anew: nothing of it is built yet."""
        copied = memo[id(self)] = CompiledModule(copy.deepcopy(self.original, memo), self.make)
        for name in HOOKS:
            object.__setattr__(copied, name, copy.deepcopy(getattr(self, name), memo))
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise pickle.PicklingError(
            f"what engine.compile made of {type(self.original).__name__} holds CUDA graphs and can't be pickled: pickle"
            " its `.original` (or its state_dict), and call engine.compile where it is loaded"
        )


class CompiledFunction:
    """A function whose calls run as deployments; it has the name, the text and the signature of the function.

    `call` is what runs it, `function` the function. Looked up on an instance it is a method, as a function is.
    """

    def __init__(self, function: Callable[..., Any], call: CompiledCall) -> None:
        self.function = function
        self.call = call
        self._run = uncompiled(call)
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __copy__(self) -> CompiledFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunction:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise pickle.PicklingError(
            f"what engine.compile made of {self.call.name} holds CUDA graphs and can't be pickled: pickle the function"
            " that it was made of, and call engine.compile where it is loaded"
        )


def uncompiled(call: CompiledCall) -> Any:
    """A plain function that torch.compile leaves alone; `call` is its attribute."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return call(args, kwargs)

    disable: Any = torch.compiler.disable
    made = disable(run)
    made.call = call
    return made


def _passed_on(name: str) -> Callable[..., Any]:
    def method(self: CompiledModule, *args: Any) -> Any:
        return getattr(self.original, name)(*args)

    return method
