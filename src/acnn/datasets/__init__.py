"""Datasets: built-in humans, generated families of shapes, FAUST, SHREC'16, folders of shapes, and augmentation."""

from acnn.datasets.builtin import Humans, builtin_human, builtin_humans
from acnn.datasets.dataset import Dataset, Example, Sample
from acnn.datasets.families import Family, make_family
from acnn.datasets.open import humans_dataset, open_dataset
from acnn.shapes.mesh import BarycentricPoints

__all__ = [
    "BarycentricPoints",
    "Dataset",
    "Example",
    "Family",
    "Humans",
    "Sample",
    "builtin_human",
    "builtin_humans",
    "humans_dataset",
    "make_family",
    "open_dataset",
]
