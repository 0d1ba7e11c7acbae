"""Descriptors of meshes and clouds: SHOT, heat and wave kernel signatures (HKS, WKS), and rings of a triangulation."""

from acnn.descriptors.shot import SHOT_LENGTH, shot
from acnn.descriptors.spectral import hks, hks_of, wks, wks_of
from acnn.descriptors.valences import RINGS_LENGTH, rings

__all__ = ["RINGS_LENGTH", "SHOT_LENGTH", "hks", "hks_of", "rings", "shot", "wks", "wks_of"]
