"""Transfer of a skin along a map: weights at the matches, and joints moved with the surface around them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.registration.procrustes import fit_motions
from acnn.shapes.mesh import BarycentricPoints, Mesh
from acnn.shapes.skin import INFLUENCES, Skin, strongest
from acnn.shapes.topology import mesh_edges

FloatArray = NDArray[np.float64]

FLAT = 1e-3
"""A joint whose vertices have a second principal extent below this fraction of the first has no rotation of its own."""


@check_arguments
def transfer_skin(skin: Skin, source: Mesh, target: Mesh, points: BarycentricPoints) -> Skin:
    """Transfer the skin of the source to the target.

    Weights are interpolated at the matches, reduced to the `INFLUENCES` largest at each vertex and normalised; vertices
    without any take those of the nearest vertex that has some. Joints keep their hierarchy and move with the surface:
    joint j goes to c R_j x + t_j, with c the ratio of edge lengths of the two surfaces and R_j, t_j the rigid motion of
    the vertices of its bone (weighted by squared weights). A joint without such vertices moves with its parent.

    Parameters
    ----------
    skin : Skin
        With weights for the vertices of the source.
    source, target : Mesh
        The mesh that has the skin, and the one that gets it.
    points : BarycentricPoints
        The matches of the target's vertices on the source, all known.

    Returns
    -------
    Skin
        With weights for the vertices of the target.
    """
    corners = source.faces[points.faces]  # (n, 3)
    rows = np.repeat(np.arange(len(corners)), 3)
    at_points = sp.csr_array(
        (points.weights.ravel(), (rows, corners.ravel())), shape=(len(corners), len(source.vertices))
    )
    joints, kept = strongest(at_points @ skin.weights)
    bare = np.flatnonzero(kept.sum(axis=1) == 0)
    if len(bare):
        from scipy.spatial import cKDTree

        clothed = np.flatnonzero(kept.sum(axis=1) > 0)
        nearest = clothed[cKDTree(target.vertices[clothed]).query(target.vertices[bare])[1]]
        joints[bare], kept[bare] = joints[nearest], kept[nearest]
    rows = np.repeat(np.arange(len(corners)), INFLUENCES)
    weights = sp.csr_array((kept.ravel(), (rows, joints.ravel())), shape=(len(corners), len(skin.names)))
    weights.eliminate_zeros()
    here = np.asarray(points.interpolate(source.vertices[source.faces]), np.float64)
    return Skin(skin.names, skin.parents, _moved_joints(skin, weights, here, target), weights)


def _moved_joints(skin: Skin, weights: sp.csr_array, here: FloatArray, target: Mesh) -> FloatArray:
    """(joints, 4, 4) transforms on the target; `here` are the matches of its vertices on the source."""
    edges = mesh_edges(target.faces).vertices
    before, after = (np.linalg.norm(x[edges[:, 0]] - x[edges[:, 1]], axis=1).sum() for x in (here, target.vertices))
    scale = float(after / max(before, 1e-300))
    scaled, there = scale * here, np.asarray(target.vertices, np.float64)
    everything = fit_motions(scaled[None], there, np.ones((1, len(here))))
    columns = sp.csc_array(weights)
    motions: dict[int, tuple[FloatArray, FloatArray]] = {-1: (everything[0][0], everything[2][0])}
    transforms = np.array(skin.transforms, np.float64)
    for joint in _parents_first(skin):
        part = slice(columns.indptr[joint], columns.indptr[joint + 1])
        vertices, weight = columns.indices[part], columns.data[part] ** 2
        if _spans_a_frame(scaled[vertices], weight):
            fitted = fit_motions(scaled[vertices][None], there[vertices], weight[None])
            motions[joint] = fitted[0][0], fitted[2][0]
        else:
            motions[joint] = motions[int(skin.parents[joint])]
        rotation, translation = motions[joint]
        transforms[joint, :3, :3] = rotation @ skin.transforms[joint, :3, :3]
        transforms[joint, :3, 3] = rotation @ (scale * skin.transforms[joint, :3, 3]) + translation
    return transforms


def _parents_first(skin: Skin) -> list[int]:
    """All joints, each after its parent."""
    depth, above = np.zeros(len(skin.parents), np.int64), skin.parents.copy()
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, skin.parents[above], -1)
    order: list[int] = np.argsort(depth, kind="stable").tolist()
    return order


def _spans_a_frame(points: FloatArray, weights: FloatArray) -> bool:
    """Whether points determine a rotation: there are three or more, and not on a line."""
    if len(points) < 3:
        return False
    centred = points - np.average(points, axis=0, weights=weights)
    extents = np.linalg.svd(np.sqrt(weights)[:, None] * centred, compute_uv=False)
    return bool(extents[1] > FLAT * extents[0])
