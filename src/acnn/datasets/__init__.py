"""Datasets: built-in humans, generated families, FAUST, SHREC'16, folders of shapes, pairs, and augmentation."""

from acnn.datasets.builtin import Humans, builtin_human, builtin_humans
from acnn.datasets.dataset import Dataset, Example, Sample
from acnn.datasets.families import Family, make_family
from acnn.datasets.open import humans_dataset, open_dataset
from acnn.datasets.pairs import Pair, PairSet, open_pairs
from acnn.shapes.mesh import BarycentricPoints

__all__ = [
    "BarycentricPoints",
    "Dataset",
    "Example",
    "Family",
    "Humans",
    "Pair",
    "PairSet",
    "Sample",
    "builtin_human",
    "builtin_humans",
    "humans_dataset",
    "make_family",
    "open_dataset",
    "open_pairs",
]
