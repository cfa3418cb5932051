"""torch lists its composite ops anew twice in each export, a third of a small capture's time: here, once in a process.

The lists are equal until a composite op is registered, so that a capture finds what it would find without this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.export import decomp_utils, exported_program

_NAME = "_collect_all_valid_cia_ops"


def list_composites_once() -> None:
    """Exports in this process share one list of composite ops from here on."""
    listing: Callable[[], set[Any]] = getattr(exported_program, _NAME)
    lists: dict[int, set[Any]] = {}

    def remembered() -> set[Any]:
        count = len(torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd"))
        if count not in lists:
            lists[count] = listing()
        return lists[count]

    for module in (decomp_utils, exported_program):
        setattr(module, _NAME, remembered)
