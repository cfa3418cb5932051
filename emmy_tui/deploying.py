"""What each kernel would be built with now, and what says so: the question of `emmy explain`, for the screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.deploy import DeploymentError, Evidence, deploys_now, pin_context
from engine.prior import steering
from engine.snapshot import KernelRow
from engine.store import Store, StoreError
from engine.vocabulary import KnobValue, Schedule


@dataclass(frozen=True, slots=True)
class Deploys:
    """One kernel. `lines` are all that was looked at, strongest first; `chosen` is None where nothing is to choose,
    and `why` says why. `prior` names what predicts."""

    kernel: str
    label: str
    shape: str
    context_key: str = ""
    gpu: str = ""
    chosen: Evidence | None = None
    runner_up: Evidence | None = None
    lines: tuple[Evidence, ...] = ()
    prior: str = ""
    why: str = ""

    @property
    def schedule(self) -> Schedule | None:
        return self.chosen.schedule if self.chosen else None

    @property
    def knobs(self) -> dict[str, KnobValue]:
        return self.chosen.schedule.as_dict() if self.chosen else {}


def read_deploys(kernel: KernelRow, run: str) -> Callable[[Store], Deploys]:
    """The question that a desk answers, in the context that the kernel was measured in last, for the program of a run
    ("" for none)."""
    key, label, shape = kernel.kernel, kernel.label or kernel.family, kernel.shape

    def question(store: Store) -> Deploys:
        try:
            context = pin_context(store, key)
            prior = steering(store.path).latest
            found = deploys_now(store, key, context, prior, run)
        except (DeploymentError, StoreError) as error:
            return Deploys(key, label, shape, why=str(error))
        gpu = next((one.gpu for one in store.contexts() if one.key == context), "")
        why = "" if found.chosen else "a library's call: there is no schedule to choose"
        return Deploys(key, label, shape, context, gpu, found.chosen, found.runner_up, found.lines, prior.version, why)

    return question
