"""The structural rules in the order in which their forks are asked."""

from __future__ import annotations

from engine.grouping.attention import AttentionRule
from engine.grouping.epilogue import EpilogueRule
from engine.grouping.prologue import PrologueRule
from engine.grouping.rowwise import RowwiseRule
from engine.grouping.siblings import SiblingRule
from engine.grouping.site import Rule

RULES: tuple[Rule, ...] = (AttentionRule(), RowwiseRule(), SiblingRule(), EpilogueRule(), PrologueRule())
