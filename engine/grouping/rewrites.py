"""The rewrites in the order in which their forks are asked, all of them before the rules."""

from __future__ import annotations

from engine.grouping.norm_scale import NormScale
from engine.grouping.rewriting import Rewrite
from engine.grouping.row_stats import RowStats
from engine.grouping.split_k import SplitK
from engine.grouping.split_keys import SplitKeys
from engine.grouping.weight_layout import WeightLayout

REWRITES: tuple[Rewrite, ...] = (NormScale(), RowStats(), SplitK(), SplitKeys(), WeightLayout())
