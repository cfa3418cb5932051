"""Code of other people on tensors without memory: where it may create them, and what its errors say.

Every tensor lives on torch's meta device, whatever device the code names: no CUDA is needed, nothing is allocated,
and code that asks for a tensor's values is recognized.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from engine.capture.errors import CaptureError, DataDependentError, UserCodeError

CREATORS = (
    *("randn", "rand", "randint", "randperm", "empty", "ones", "zeros", "full", "arange", "linspace", "eye"),
    *("tensor", "as_tensor", "empty_strided", "normal", "logspace"),
    *("randn_like", "rand_like", "randint_like", "empty_like", "ones_like", "zeros_like", "full_like"),
)
_DATA_DEPENDENT = (
    *("meta tensors", "meta device type tensor", "data-dependent", "data-independent", "Could not guard"),
    "meta tensor; no data",
)

DATA_TEXT = "The code asks for the values of a tensor (an `if` on one, .item(), nonzero): only shapes are known here."


class OnMeta(TorchFunctionMode):
    """Sends whatever the code creates or moves to the meta device, and remembers which GPU it named."""

    def __init__(self, devices: list[str]) -> None:
        super().__init__()
        self._devices = devices
        self._creators = {getattr(torch, name) for name in CREATORS}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = {name: self._moved(value) for name, value in (kwargs or {}).items() if name != "generator"}
        if func in (torch.Tensor.cuda, torch.Tensor.cpu):
            self._note(func.__name__, args[1] if len(args) > 1 else options.get("device"))
            return args[0]
        if func in self._creators and options.get("device") is None:
            options["device"] = torch.device("meta")
        done = func(*(self._moved(value) for value in args), **options)
        if isinstance(done, torch.Tensor) and done.device.type != "meta":
            return done.to("meta")
        return done

    def _moved(self, value: Any) -> Any:
        if isinstance(value, str) and value.split(":")[0] in ("cuda", "cpu"):
            value = torch.device(value)
        if not isinstance(value, torch.device) or value.type == "meta":
            return value
        if value.type == "cuda":
            self._note("cuda", value)
        return torch.device("meta")

    def _note(self, kind: str, where: Any) -> None:
        if kind == "cuda":
            number = where if isinstance(where, int) and not isinstance(where, bool) else getattr(where, "index", None)
            self._devices.append("cuda" if number is None else f"cuda:{number}")


class _AnyGenerator(torch.Generator):
    """A generator for any device; random values are never drawn."""

    def __new__(cls, device: object = None) -> _AnyGenerator:
        make: Any = super().__new__
        return cast(_AnyGenerator, make(cls, device="cpu"))


@contextmanager
def user_code() -> Iterator[None]:
    """Turns whatever the user's code raises into one sentence, and lets it make generators for a GPU."""
    made = torch.Generator
    torch.__dict__["Generator"] = _AnyGenerator
    try:
        yield
    except CaptureError:
        raise
    except (Exception, SystemExit) as error:
        if is_data_dependent(error):
            raise DataDependentError(DATA_TEXT) from None
        raise UserCodeError(f"The code raised {one_line(error)}.") from None
    finally:
        torch.__dict__["Generator"] = made


def is_data_dependent(error: BaseException) -> bool:
    return type(error).__name__ in ("DataDependentOutputException", "GuardOnDataDependentSymNode") or any(
        text in str(error) for text in _DATA_DEPENDENT
    )


def one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
    return text.rstrip(".")


def first_named(devices: list[str], otherwise: str) -> str:
    """The GPU that the code named by number, else the one it named at all, else the other one."""
    named = sorted(devices, key=lambda name: ":" not in name)
    return named[0] if named else otherwise
