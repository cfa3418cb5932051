"""The actions of the Prior tab."""

from __future__ import annotations

from emmy_tui.action import PRIOR, Action, Group, Now, because, on_tabs


def _is_known(now: Now) -> bool:
    return now.trained


PRIOR_ACTIONS: tuple[Action, ...] = (
    on_tabs(
        (PRIOR,),
        "flip_prior",
        ("v",),
        "Flip",
        "Ranked kernels or worst residuals, where they share one place",
        Group.PRIOR,
        lambda now: now.shared_slot,
        because("Both lists fit"),
        footer=7,
    ),
    on_tabs(
        (PRIOR,),
        "trained",
        ("t",),
        "Trained on",
        "Every kernel that the learned model was fitted to",
        Group.PRIOR,
        _is_known,
        because("No prior was read yet"),
        footer=8,
    ),
)
