"""The actions of the Prior tab."""

from __future__ import annotations

from emmy_tui.action import PRIOR, Action, Group, Now, because, on_tabs


def _has_row(now: Now) -> bool:
    return now.items > 0


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
        footer=6,
    ),
    on_tabs(
        (PRIOR,),
        "trained",
        ("t",),
        "Trained on",
        "Every kernel that the learned model was fitted to",
        Group.PRIOR,
        _has_row,
        because("The database has nothing to rank yet"),
        footer=7,
    ),
)
