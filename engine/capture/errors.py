"""Why a program can't be captured. The text of each error is one sentence that says what to do.

CaptureError
├── TargetSyntaxError        the text is no Python
├── NotACallError            the last statement isn't a call
├── TargetOptionError        an option that no model can be fed with
├── TargetMissingError       a model, file, or attribute that isn't there
├── NoTensorInputError       nothing the call reads is a tensor
├── UserCodeError            the user's own code raised
├── DataDependentError       the program asks for values that exist only at run time
├── EffectError              the program does something besides computing
├── FilledCacheError         the code computes what a cache keeps
├── UnsupportedOpError       an op that no kernel is generated for
├── UnsupportedTensorError   a dtype, an empty tensor or an output that kernels don't cover
├── CaptureTimeoutError      the code ran longer than allowed
├── TorchMissingError        torch isn't installed
├── ModelsMissingError       transformers isn't installed
└── CaptureCrashError        the capturing process died
"""

from __future__ import annotations


class CaptureError(Exception):
    """The program can't be captured."""


class TargetSyntaxError(CaptureError):
    """The text is no Python."""


class NotACallError(CaptureError):
    """The last statement isn't a call."""


class TargetOptionError(CaptureError):
    """An option that no model can be fed with."""


class TargetMissingError(CaptureError):
    """A model, file, or attribute that isn't there."""


class NoTensorInputError(CaptureError):
    """Nothing the call reads is a tensor."""


class UserCodeError(CaptureError):
    """The user's own code raised."""


class DataDependentError(CaptureError):
    """The program asks for values that exist only at run time."""


class EffectError(CaptureError):
    """The program does something besides computing."""


class FilledCacheError(CaptureError):
    """The code computes what a cache keeps; once the cache has it, the code may be captured."""


class UnsupportedOpError(CaptureError):
    """An op that no kernel is generated for."""


class UnsupportedTensorError(CaptureError):
    """A dtype, an empty tensor or an output that kernels don't cover."""


class CaptureTimeoutError(CaptureError):
    """The code ran longer than allowed."""


class TorchMissingError(CaptureError):
    """torch isn't installed."""


class ModelsMissingError(CaptureError):
    """transformers isn't installed."""


class CaptureCrashError(CaptureError):
    """The capturing process died."""


ERROR_TYPES: dict[str, type[CaptureError]] = {
    kind.__name__: kind
    for kind in (
        CaptureError,
        TargetSyntaxError,
        NotACallError,
        TargetOptionError,
        TargetMissingError,
        NoTensorInputError,
        UserCodeError,
        DataDependentError,
        EffectError,
        FilledCacheError,
        UnsupportedOpError,
        UnsupportedTensorError,
        CaptureTimeoutError,
        TorchMissingError,
        ModelsMissingError,
        CaptureCrashError,
    )
}
