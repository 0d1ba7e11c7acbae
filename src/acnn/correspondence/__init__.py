"""Correspondence: soft maps, functional maps, ZoomOut, refinement, maps through a reference, transfer."""

from acnn.correspondence.blended import BlendedMap, blended_map
from acnn.correspondence.descriptor_matching import UnlearnedMatch, match_without_network
from acnn.correspondence.functional_map import SpectralBasis, basis_of, zoomout, zoomout_sizes
from acnn.correspondence.guided_zoomout import guided_zoomout
from acnn.correspondence.partial_map import PartialMap, partial_map, partial_map_from_descriptors
from acnn.correspondence.point_maps import reference_to_target_from, subvertex_map, vertex_distortions
from acnn.correspondence.refine import Refined, refine
from acnn.correspondence.soft_map import (
    SoftMap,
    soft_map_from_features,
    soft_map_from_logits,
    soft_map_from_point_map,
)
from acnn.correspondence.texture import carry_texture, colors_at
from acnn.correspondence.transfer import carry_shape, landmarks_on_query, pull_back, push_forward

__all__ = [
    "BlendedMap",
    "PartialMap",
    "Refined",
    "SoftMap",
    "SpectralBasis",
    "UnlearnedMatch",
    "basis_of",
    "blended_map",
    "carry_shape",
    "carry_texture",
    "colors_at",
    "guided_zoomout",
    "landmarks_on_query",
    "match_without_network",
    "partial_map",
    "partial_map_from_descriptors",
    "pull_back",
    "push_forward",
    "reference_to_target_from",
    "refine",
    "soft_map_from_features",
    "soft_map_from_logits",
    "soft_map_from_point_map",
    "subvertex_map",
    "vertex_distortions",
    "zoomout",
    "zoomout_sizes",
]
