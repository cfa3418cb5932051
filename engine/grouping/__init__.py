"""Structural forks: which kernels a graph is divided into, as a tree of questions with several correct answers."""

from engine.grouping.space import GroupingSpace, grouping_space

__all__ = ["GroupingSpace", "grouping_space"]
