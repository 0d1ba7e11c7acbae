"""What the live viewer shows: shapes, their maps to a reference and the model that computed them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from acnn.correspondence.point_maps import invert_through_reference
from acnn.correspondence.soft_map import SoftMap
from acnn.errors import InputError
from acnn.methods.run import Run
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import PatchSettings
from acnn.shapes.mesh import Shape
from acnn.surface.curvature import principal_frames
from acnn.surface.surface import Surface
from acnn.training.prepared import make_patches
from acnn.types import FloatArray, IntArray

NETWORK, REFINED, MATCH, TRUTH = "network", "refined", "match", "truth"
"""Names of maps: the network's own; refined, to its reference; what `match` gives; the ground truth."""


@dataclass(frozen=True, eq=False)
class ViewShape:
    """One shape of the viewer.

    Attributes
    ----------
    name, shape, surface
        The last in run units; its triangles stand for a cloud.
    maps : (n,) array
        Reference vertices by the name of the map, -1 unknown; empty where nothing was matched.
    errors : (n,) array
        By the same names, over the reference's length; NaN unknown.
    soft_map : SoftMap or None
        Of the network, or None.
    settings : PatchSettings
        Of its patches.
    unit : float or None
        As given when the patches were made, so that the cache knows them again.
    cache : bool
        Whether patches are looked for and kept there.
    judged_confidence : (n,) array or None
        In 0..1, of the map that was found (`map_confidence`), or None.
    """

    name: str
    shape: Shape
    surface: Surface
    maps: dict[str, IntArray]
    errors: dict[str, FloatArray]
    soft_map: SoftMap | None
    settings: PatchSettings
    unit: float | None = None
    cache: bool = True
    judged_confidence: FloatArray | None = None

    @property
    def confidence(self) -> FloatArray | None:
        """(n,) in 0..1: of the map where it was judged, else of the network, else None."""
        if self.judged_confidence is None and self.soft_map is not None:
            return self.soft_map.confidence.astype(float)
        return self.judged_confidence

    @cached_property
    def patches(self) -> PatchOperator:
        """The shape's patch operator, from the cache or computed when first asked for."""
        return make_patches(self.shape, self.settings, unit=self.unit, cache=self.cache)

    @cached_property
    def directions(self) -> FloatArray:
        """(faces, 2, 3) principal directions, that of the larger signed curvature first."""
        return principal_frames(self.surface, self.settings.smoothing)


@dataclass(frozen=True, eq=False)
class ViewData:
    """Everything the viewer shows.

    Attributes
    ----------
    title : str
        Of the window.
    shapes : tuple[ViewShape, ...]
        Those matched, or merely looked at.
    run : Run or None
        None where nothing was matched.
    reference : ViewShape or None
        What the shapes are matched to: the reference of the run, or where files are matched to each other the last of
        them; None where nothing was matched.
    reference_last : bool
        Whether it stands to the right of the shapes, not to the left.
    """

    title: str
    shapes: tuple[ViewShape, ...]
    run: Run | None = None
    reference: ViewShape | None = None
    reference_last: bool = False

    @property
    def map_names(self) -> tuple[str, ...]:
        """Names of the maps that every shape has, the best last but for the truth."""
        names = (NETWORK, REFINED, MATCH, TRUTH)
        return tuple(n for n in names if self.shapes and all(n in s.maps for s in self.shapes))

    def onward(self, shape: ViewShape, map_name: str) -> IntArray:
        """(m,) for each reference vertex a vertex of a matched shape, through one of its maps."""
        if self.reference is None:
            raise InputError("Nothing was matched: give a run with --model.")
        matched = shape.maps[map_name]
        known = np.flatnonzero(matched >= 0)
        confidence = None if shape.confidence is None else shape.confidence[known]
        return known[invert_through_reference(matched[known], self.reference.surface, confidence)].astype(np.int32)
