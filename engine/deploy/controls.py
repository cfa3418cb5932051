"""ptxas controls (ACF) in a deployment: which recorded times count here, and can their controls be applied.

Times of candidates with controls are of a context that names a ptxas binary; on the same machine without a choice of
ptxas the context is another. Both are this place: where that binary is found, what was learned with it counts here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from engine.codegen import acf_of
from engine.extras import install_text
from engine.measure import Assembler, Controls, ControlsError, ControlsFile, candidates, read_assembler
from engine.store import Store, StoreError
from engine.vocabulary import Context, Schedule

NO_FILE_APPLIES = "a Python file can't apply ptxas controls"


class ControlsHere:
    """What of controls can be applied where a deployment is built. A ptxas is looked for once it is needed.

    `context` is that of this place with Triton's own ptxas; None stands for the recorded context of the key that is
    asked for. `ptxas` names the one binary that counts. With `none_because`, a sentence, nothing can be applied.
    """

    def __init__(self, context: Context | None = None, ptxas: Path | None = None, none_because: str = "") -> None:
        self._context = context
        self._ptxas = ptxas
        self._none_because = none_because
        self._found: list[Assembler] | None = None
        self._trouble = ""

    def contexts(self, store: Store, context_key: str) -> list[Context]:
        """The recorded contexts that differ from this place's by their choice of a ptxas alone."""
        own = self._context or store.context(context_key)
        if own is None or names_binary(own):
            return []
        return [one for one in store.contexts() if names_binary(one) and replace(one, ptxas=own.ptxas) == own]

    def assembler(self, context: Context) -> Assembler | str:
        """The ptxas of a context that names its binary, or a sentence why it can't be used."""
        if self._none_because:
            return self._none_because
        for found in self._assemblers():
            if found.identity == context.ptxas:
                return found
        version = context.ptxas.partition("+")[0]
        if self._ptxas is not None:
            return self._trouble or f"{self._ptxas} is not the ptxas {version} that its controls were measured with"
        return (
            f"the ptxas {version} that its controls were measured with isn't here: name it with ptxas or --ptxas, or"
            f" {install_text('acf')}"
        )

    def unusable_because(self, schedule: Schedule, store: Store, context_key: str) -> str:
        """A sentence why the controls of a schedule can't be applied here, or ""."""
        if not acf_of(schedule):
            return ""
        if reason := controls_unusable_because(schedule, store, context_key):
            return reason
        context = store.context(context_key)
        found = self.assembler(context) if context is not None else ""
        return found if isinstance(found, str) else ""

    def usable(self, context: Context | None) -> bool:
        """Whether what was learned in the context can be built as it was measured."""
        return context is None or not names_binary(context) or not isinstance(self.assembler(context), str)

    def controls(self, schedules: Iterable[Schedule], store: Store, context: Context | None) -> Controls | None:
        """The ptxas of the context with the files that the schedules name; None to build with Triton's own."""
        if context is None or not names_binary(context):
            return None
        found = self.assembler(context)
        if isinstance(found, str):
            return None
        wanted = sorted({acf_of(schedule) for schedule in schedules} - {""})
        kept = [store.controls_file(sha256) for sha256 in wanted]
        return Controls(found, tuple(ControlsFile(one.name, one.data) for one in kept if one is not None))

    def _assemblers(self) -> list[Assembler]:
        if self._found is None:
            self._found = []
            for path in [self._ptxas] if self._ptxas is not None else candidates():
                try:
                    self._found.append(read_assembler(path))
                except ControlsError as error:
                    self._trouble = str(error)
        return self._found


def names_binary(context: Context) -> bool:
    """Whether the context's ptxas was chosen by a person, and so is known by its bytes too."""
    return "+" in context.ptxas


def controls_unusable_because(schedule: Schedule, store: Store, context_key: str) -> str:
    """A sentence why a database says that a schedule's controls can't be applied in a context, or "".

    The bytes have to be there under their hash, and accepted by the context's ptxas for its GPU.
    """
    acf = acf_of(schedule)
    context = store.context(context_key) if acf else None
    if context is None:
        return ""
    try:
        store.controls_file(acf)
    except StoreError as error:
        return str(error)
    return store.controls_unusable_because(acf, context) or ""
