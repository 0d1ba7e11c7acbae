"""Descriptors of meshes and clouds: SHOT, heat and wave kernel signatures (HKS, WKS), and the valence descriptor."""

from acnn.descriptors.shot import SHOT_LENGTH, shot
from acnn.descriptors.spectral import hks, hks_of, wks, wks_of
from acnn.descriptors.valences import VALENCE_LENGTH, valence_descriptors

__all__ = ["SHOT_LENGTH", "VALENCE_LENGTH", "hks", "hks_of", "shot", "valence_descriptors", "wks", "wks_of"]
