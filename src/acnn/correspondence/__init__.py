"""Correspondence: soft maps, functional maps, ZoomOut, refinement, maps through a reference, transfer."""

from acnn.correspondence.basis import SpectralBasis, basis_of
from acnn.correspondence.distortion import vertex_distortions
from acnn.correspondence.guided_zoomout import guided_zoomout
from acnn.correspondence.partial_map import PartialMap, partial_map, partial_map_from_descriptors
from acnn.correspondence.refine import Refined, refine
from acnn.correspondence.shape_transfer import carry_shape
from acnn.correspondence.soft_map import (
    SoftMap,
    soft_map_from_features,
    soft_map_from_logits,
    soft_map_from_point_map,
)
from acnn.correspondence.subvertex import subvertex_map
from acnn.correspondence.texture_transfer import carry_texture, colors_at
from acnn.correspondence.through import reference_to_target_from
from acnn.correspondence.transfer import landmarks_on_query, pull_back, push_forward
from acnn.correspondence.unlearned import UnlearnedMatch, match_without_network
from acnn.correspondence.zoomout import zoomout, zoomout_sizes

__all__ = [
    "PartialMap",
    "Refined",
    "SoftMap",
    "SpectralBasis",
    "UnlearnedMatch",
    "basis_of",
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
