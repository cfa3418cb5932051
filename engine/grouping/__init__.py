"""Structural forks: which kernels a graph is divided into, as a tree of questions with several correct answers."""

from engine.grouping.rules import RULES
from engine.grouping.site import Rule, Site
from engine.grouping.space import GroupingSpace, grouping_space

__all__ = ["RULES", "GroupingSpace", "Rule", "Site", "grouping_space"]
