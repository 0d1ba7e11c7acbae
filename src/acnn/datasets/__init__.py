"""Datasets: built-in humans, FAUST, folders of one's own, and makers of more."""

from acnn.datasets.builtin import Humans, builtin_human, builtin_humans
from acnn.datasets.collection import BarycentricTruth, Dataset, Example, Sample
from acnn.datasets.opening import humans_dataset, open_dataset

__all__ = [
    "BarycentricTruth",
    "Dataset",
    "Example",
    "Humans",
    "Sample",
    "builtin_human",
    "builtin_humans",
    "humans_dataset",
    "open_dataset",
]
