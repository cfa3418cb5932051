"""The structural rules in the order in which their forks are asked."""

from __future__ import annotations

from engine.grouping.epilogue import EpilogueRule
from engine.grouping.prologue import PrologueRule
from engine.grouping.rowwise import RowwiseRule
from engine.grouping.site import Rule

RULES: tuple[Rule, ...] = (RowwiseRule(), EpilogueRule(), PrologueRule())
