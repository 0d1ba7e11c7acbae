"""Descriptors: SHOT, heat kernel signature (HKS) and wave kernel signature (WKS) of meshes and clouds."""

from acnn.descriptors.shot import SHOT_LENGTH, shot
from acnn.descriptors.spectral import hks, hks_of, wks, wks_of

__all__ = ["SHOT_LENGTH", "hks", "hks_of", "shot", "wks", "wks_of"]
