"""The structural rules in the order in which their forks are asked."""

from __future__ import annotations

from engine.grouping.attention import AttentionRule
from engine.grouping.attention_prologue import AttentionPrologueRule
from engine.grouping.epilogue import EpilogueRule, GroupEpilogueRule
from engine.grouping.prologue import PrologueRule
from engine.grouping.row_sums import RowSumRule
from engine.grouping.rowwise import RowwiseRule
from engine.grouping.siblings import SiblingRule, SideBySideRule
from engine.grouping.site import Rule

RULES: tuple[Rule, ...] = (
    AttentionRule(),
    AttentionPrologueRule(),
    RowwiseRule(),
    SideBySideRule(),
    SiblingRule(),
    GroupEpilogueRule(),
    EpilogueRule(),
    RowSumRule(),
    PrologueRule(),
)
