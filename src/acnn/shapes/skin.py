"""Skins: the joints of an animated mesh, and how much each of them moves each vertex."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from acnn.types import FloatArray, IntArray

INFLUENCES = 4
"""Joints per vertex of a skin that is written: programs that play glTF must support one set of four."""


@dataclass(frozen=True, eq=False)
class Skin:
    """Joints in the pose in which a mesh was attached to them, and their weights at its vertices.

    A vertex x moves to sum_j w_j(x) G_j B_j^-1 x, with B_j the transform of joint j in that pose and G_j in another.

    Attributes
    ----------
    names : tuple[str, ...]
        Of the joints.
    parents : (joints,) int32 array
        Parent of each joint, -1 where it has none.
    transforms : (joints, 4, 4) float64 array
        B_j: from coordinates of the joint to those of the mesh.
    weights : (n, joints) sparse float64 array
        Rows sum to 1, or are empty where a vertex belongs to no joint.
    """

    names: tuple[str, ...]
    parents: IntArray
    transforms: FloatArray
    weights: sp.csr_array


def strongest(weights: sp.csr_array, count: int = INFLUENCES) -> tuple[IntArray, FloatArray]:
    """The joints of largest weight at each vertex.

    Parameters
    ----------
    weights : (n, joints) sparse array
        At least 0.
    count : int
        Number of joints per vertex.

    Returns
    -------
    joints : (n, count) int32 array
        By decreasing weight; 0 where a vertex has fewer.
    kept : (n, count) float64 array
        Their weights, which sum to 1 unless all are 0.
    """
    rows = sp.csr_array(weights)
    joints, kept = np.zeros((rows.shape[0], count), np.int32), np.zeros((rows.shape[0], count))
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    order = np.lexsort((rows.indices, -rows.data, row))  # of equal weights the joint of lower index
    rank = np.arange(len(row)) - rows.indptr[row]
    first = (rank < count) & (rows.data[order] > 0)
    at = row[first], rank[first]
    joints[at], kept[at] = rows.indices[order][first], rows.data[order][first]
    return joints, kept / np.maximum(kept.sum(axis=1, keepdims=True), 1e-300)
