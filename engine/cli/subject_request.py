"""Which program a command works on: the options that name one, alike for each command that takes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, get_type_hints

from engine.cli.options import Batch, Code, Database, Demo, Dtype, Layer, SeqLen, TargetName


@dataclass(frozen=True, slots=True)
class SubjectRequest:
    """The options, in the order of `--help`: "" in both `target` and `code` means no program, or all that are recorded.

    How `target` is fed is None for the default.
    """

    target: TargetName = ""
    code: Code = ""
    layer: Layer = None
    dtype: Dtype = None
    seq_len: SeqLen = None
    batch: Batch = None
    database: Database = None
    demo: Demo = False

    @property
    def fed(self) -> bool:
        """Whether it says how a target is fed."""
        return any(option is not None for option in (self.layer, self.dtype, self.seq_len, self.batch))

    def contradictions(self) -> list[tuple[bool, str]]:
        """What can't be given together: whether it was, each with the sentence that says so."""
        return [
            (bool(self.code and self.target), "TARGET and --code are two programs: give one of them"),
            (
                self.fed and not self.target,
                "--layer, --dtype, --seq-len and --batch say how a TARGET is fed: name one",
            ),
        ]


def takes_subject(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer reads it: in place of its first parameter, a SubjectRequest, an option a field."""
    hints = get_type_hints(SubjectRequest, include_extras=True)
    own_hints = get_type_hints(command, include_extras=True)
    options = fields(SubjectRequest)

    @wraps(command)
    def typed(**given: Any) -> None:
        command(SubjectRequest(**{option.name: given.pop(option.name) for option in options}), **given)

    _, *others = inspect.signature(command).parameters.values()
    by_name = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        *(inspect.Parameter(o.name, by_name, default=o.default, annotation=hints[o.name]) for o in options),
        *(one.replace(kind=by_name, annotation=own_hints[one.name]) for one in others),
    ]
    typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return typed
