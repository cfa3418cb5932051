"""Search: a fork tree and the rule that descends it. It knows no kernels, no times and no storage."""

from engine.search.action_selection import puct
from engine.search.completion import FirstCompletion
from engine.search.enumerated import EnumeratedSpace
from engine.search.patience import StopReason
from engine.search.search import Proposal, Search
from engine.search.space import Path, Scorer, Space
from engine.search.tree import Node

__all__ = [
    "EnumeratedSpace",
    "FirstCompletion",
    "Node",
    "Path",
    "Proposal",
    "Scorer",
    "Search",
    "Space",
    "StopReason",
    "puct",
]
