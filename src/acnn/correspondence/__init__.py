"""Correspondence: soft maps, functional maps, ZoomOut, refinement, maps through a reference, transfer."""

from acnn.correspondence.blended import BlendedMap, blended_map
from acnn.correspondence.descriptor_matching import DescriptorMatch, match_by_descriptors
from acnn.correspondence.functional_map import SpectralBasis, basis_of
from acnn.correspondence.guided_zoomout import guided_zoomout
from acnn.correspondence.partial_map import partial_map, partial_map_from_descriptors
from acnn.correspondence.partial_search import PartialMap
from acnn.correspondence.point_maps import barycentric_map, invert_through_reference, vertex_distortions
from acnn.correspondence.refine import Refined, refine
from acnn.correspondence.soft_map import (
    SoftMap,
    soft_map_from_features,
    soft_map_from_logits,
    soft_map_from_point_map,
)
from acnn.correspondence.texture import colors_at, transfer_texture
from acnn.correspondence.transfer import landmarks_on_query, pull_back, push_forward
from acnn.correspondence.zoomout import zoomout, zoomout_sizes

__all__ = [
    "BlendedMap",
    "DescriptorMatch",
    "PartialMap",
    "Refined",
    "SoftMap",
    "SpectralBasis",
    "barycentric_map",
    "basis_of",
    "blended_map",
    "colors_at",
    "guided_zoomout",
    "invert_through_reference",
    "landmarks_on_query",
    "match_by_descriptors",
    "partial_map",
    "partial_map_from_descriptors",
    "pull_back",
    "push_forward",
    "refine",
    "soft_map_from_features",
    "soft_map_from_logits",
    "soft_map_from_point_map",
    "transfer_texture",
    "vertex_distortions",
    "zoomout",
    "zoomout_sizes",
]
