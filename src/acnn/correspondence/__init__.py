"""Correspondence: soft maps, functional maps, ZoomOut, refinement, maps through a reference, transfer."""

from acnn.correspondence.basis import SpectralBasis, basis_of
from acnn.correspondence.refine import Refined, refine
from acnn.correspondence.soft_map import (
    SoftMap,
    soft_map_from_features,
    soft_map_from_logits,
    soft_map_from_point_map,
)
from acnn.correspondence.through import compose, query_to_target_through, reference_to_target_from
from acnn.correspondence.transfer import pull_back, push_forward
from acnn.correspondence.zoomout import zoomout, zoomout_sizes

__all__ = [
    "Refined",
    "SoftMap",
    "SpectralBasis",
    "basis_of",
    "compose",
    "pull_back",
    "push_forward",
    "query_to_target_through",
    "reference_to_target_from",
    "refine",
    "soft_map_from_features",
    "soft_map_from_logits",
    "soft_map_from_point_map",
    "zoomout",
    "zoomout_sizes",
]
