"""The facts about a shape, with whether it can be matched."""

from __future__ import annotations

from typing import Any

import numpy as np

from acnn.errors import InputError
from acnn.shapes import Mesh, PointCloud, describe
from acnn.shapes.weld import same_place

MANY = 1000
"""Points above which a cloud is not tried out."""


def describe_shape(shape: Mesh | PointCloud) -> dict[str, Any]:
    """What `acnn.shapes.describe` says, and the finding `no-surface` for a cloud of which no surface can be made."""
    facts = describe(shape)
    if isinstance(shape, PointCloud):
        # Whoever matches the cloud loads it with repair, which joins points at the same place.
        single = np.unique(same_place(np.asarray(shape.vertices, np.float64)))
        cloud = PointCloud(shape.vertices[single], None if shape.normals is None else shape.normals[single])
        if not _has_surface(cloud):
            text = f"no surface can be made of its {len(single)} points, so it cannot be matched: use more points"
            facts["findings"].append({"kind": "no-surface", "count": 1, "text": text, "repaired": False})
    return facts


def _has_surface(cloud: PointCloud) -> bool:
    """Whether anything can be computed on a cloud; one of very many points is believed to have a surface."""
    from acnn.surface import surface_of

    try:
        return len(cloud.vertices) > MANY or surface_of(cloud, unit=1.0) is not None
    except InputError:
        return False
