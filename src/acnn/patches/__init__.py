"""Patches: operators that gather a function on a surface around every vertex."""

from acnn.patches.anisotropic import build_patches, check_kernels
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import PatchSettings

__all__ = ["PatchOperator", "PatchSettings", "build_patches", "check_kernels"]
