"""Patches: operators that gather a function on a surface around every vertex."""

from acnn.patches.build import build_patches
from acnn.patches.cache import cached_patches, read_patches, write_patches
from acnn.patches.check import check_kernels
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import PatchSettings

__all__ = [
    "PatchOperator",
    "PatchSettings",
    "build_patches",
    "cached_patches",
    "check_kernels",
    "read_patches",
    "write_patches",
]
