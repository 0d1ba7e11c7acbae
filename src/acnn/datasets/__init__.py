"""Datasets: built-in humans, and makers of more."""

from acnn.datasets.builtin import Humans, builtin_human, builtin_humans

__all__ = ["Humans", "builtin_human", "builtin_humans"]
