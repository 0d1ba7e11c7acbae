"""Data of the live viewer: shapes, their maps to a reference, and the network that computed them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from acnn.correspondence.point_maps import barycentric_map, invert_through_reference
from acnn.correspondence.soft_map import SoftMap
from acnn.correspondence.texture import transfer_texture
from acnn.errors import InputError
from acnn.methods.run import Run
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import GeodesicPatchSettings, PatchSettings
from acnn.shapes.mesh import Mesh, Shape, Texture
from acnn.surface.curvature import SMOOTHING, principal_frames
from acnn.surface.surface import Surface
from acnn.training.prepared import make_patches
from acnn.types import FloatArray, IntArray
from acnn.viewer.match_page import SMOOTHED

NETWORK, REFINED, MATCH, TRUTH = "network", "refined", "match", "ground truth"
"""Names of maps: network output; refined map to its reference; map of `match`; ground truth."""


@dataclass(frozen=True, eq=False)
class ViewShape:
    """One shape of the viewer.

    Attributes
    ----------
    name : str
        Shown as its label.
    shape : Shape
        As loaded.
    surface : Surface
        The shape in normalised units; for a point cloud with the triangles of its local triangulation.
    maps : dict of str to (n,) array
        Reference vertices by name of the map, -1 unknown; empty if nothing was matched.
    errors : dict of str to (n,) array
        Errors by the same names, divided by the length of the reference; NaN unknown.
    soft_map : SoftMap or None
        Output of the network.
    settings : PatchSettings
        Settings of its patches.
    unit : float or None
        As given when the patches were built, so that they are found in the cache.
    cache : bool
        Whether patches are read from and written to the cache.
    judged_confidence : (n,) array or None
        Confidence of the final map (`map_confidence`), in 0..1.
    texture : Texture or None
        Of the target, or transferred from it.
    """

    name: str
    shape: Shape
    surface: Surface
    maps: dict[str, IntArray]
    errors: dict[str, FloatArray]
    soft_map: SoftMap | None
    settings: PatchSettings | GeodesicPatchSettings
    unit: float | None = None
    cache: bool = True
    judged_confidence: FloatArray | None = None
    texture: Texture | None = None

    @property
    def confidence(self) -> FloatArray | None:
        """(n,) in 0..1: of the final map if known, else of the network, else None."""
        if self.judged_confidence is None and self.soft_map is not None:
            return self.soft_map.confidence.astype(float)
        return self.judged_confidence

    @cached_property
    def patches(self) -> PatchOperator:
        """Patch operator of the shape, from the cache or computed at first use."""
        return make_patches(self.shape, self.settings, unit=self.unit, cache=self.cache)

    @cached_property
    def directions(self) -> FloatArray:
        """(faces, 2, 3) principal directions, that of the larger signed curvature first."""
        return principal_frames(self.surface, getattr(self.settings, "smoothing", SMOOTHING))

    def textured(self, map_name: str, target: ViewShape) -> ViewShape:
        """The same with the texture of a target, transferred along a map; as it is where there is none to transfer."""
        if target.texture is None or not isinstance(self.shape, Mesh) or len(self.surface.vertices) > SMOOTHED:
            return self
        assert isinstance(target.shape, Mesh)
        painted = replace(target.shape, texture=target.texture)
        points = barycentric_map(self.maps[map_name], self.surface, target.surface)
        return replace(self, texture=transfer_texture(self.shape, painted, points)[0])


@dataclass(frozen=True, eq=False)
class ViewData:
    """Data of the viewer.

    Attributes
    ----------
    title : str
        Title of the window.
    shapes : tuple[ViewShape, ...]
        Matched shapes, or shapes without a match.
    run : Run or None
        The network; None if nothing was matched.
    reference : ViewShape or None
        What the shapes are matched to: the reference of the run, or the last of several files; None if nothing was
        matched.
    reference_last : bool
        Whether it is shown to the right of the shapes.
    """

    title: str
    shapes: tuple[ViewShape, ...]
    run: Run | None = None
    reference: ViewShape | None = None
    reference_last: bool = False

    @property
    def map_names(self) -> tuple[str, ...]:
        """Names of the maps that every shape has, in order of quality, the ground truth last."""
        names = (NETWORK, REFINED, MATCH, TRUTH)
        return tuple(n for n in names if self.shapes and all(n in s.maps for s in self.shapes))

    def onward(self, shape: ViewShape, map_name: str) -> IntArray:
        """(m,) matched vertex of a shape for each reference vertex, by one of its maps."""
        if self.reference is None:
            raise InputError("Nothing was matched: give a model with --model.")
        matched = shape.maps[map_name]
        known = np.flatnonzero(matched >= 0)
        confidence = None if shape.confidence is None else shape.confidence[known]
        return known[invert_through_reference(matched[known], self.reference.surface, confidence)].astype(np.int32)
