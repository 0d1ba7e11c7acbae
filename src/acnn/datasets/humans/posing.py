"""Posing of bodies: bones turn, limbs are kept from intersecting the body, and the skin is relaxed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from acnn.compilation import compiled
from acnn.datasets.humans.body import Body
from acnn.datasets.humans.poses import Arm, Leg, Pose, blend, bone_turns
from acnn.surface.simplify import decimate

_OPEN = Pose(
    Arm((0.8, -1.0, 0.1), (0.8, -1.0, 0.35)),
    Arm((0.8, -1.0, 0.1), (0.8, -1.0, 0.35)),
    Leg((0.25, -1, 0)),
    Leg((0.25, -1, 0)),
)
_PROXY = 1500  # vertices of the coarse body on which collisions are detected
# Tolerated fraction of vertices inside another body part, beyond that of the open stance: folds at groin and knee.
_OVERLAP = 0.02


@dataclass(frozen=True, eq=False)
class Subject:
    """One body at rest.

    Attributes
    ----------
    rest : (n, 3) array
        All vertices of the body model.
    heads : (b, 3) array
        Joint of each bone.
    overlap : float
        Fraction of the vertices inside another part of the body in an open stance.
    """

    rest: NDArray[np.float64]
    heads: NDArray[np.float64]
    overlap: float


class Poser:
    """Poses subjects in one connectivity.

    Parameters
    ----------
    body : Body
        The body model.
    vertices : int
        Number of vertices of the connectivity.

    Attributes
    ----------
    kept : (n,) array
        Vertices of the body model in the connectivity.
    faces : (m, 3) int32 array
    """

    def __init__(self, body: Body, vertices: int) -> None:
        middle = body.rest({})[0]
        self.body = body
        self.kept, self.faces = decimate(middle, body.faces, vertices, size=body.fine)
        self._proxy_kept, self._proxy_faces = decimate(middle, body.faces, _PROXY, size=body.fine)
        self._coarse, self._proxy = (replace(body, weights=body.weights[k]) for k in (self.kept, self._proxy_kept))
        # The weight per vertex shrinks with the area of a vertex, so that every resolution relaxes alike.
        self._relax = rigid_relaxer(self.faces, vertices, hold=150.0 / vertices, rounds=20)

    def subject(self, phenotypes: Mapping[str, float]) -> Subject:
        """A subject of these phenotypes."""
        rest, heads = self.body.rest(phenotypes)
        return Subject(rest, heads, self._overlap(rest, heads, bone_turns(_OPEN, self.body.bones, heads)))

    def pose(
        self, subject: Subject, pose: Pose, jitter: float, seed: int, overlap: float = _OVERLAP
    ) -> tuple[NDArray[np.float64], float]:
        """Pose a subject, easing the pose towards an open stance until limbs hardly intersect the body.

        Parameters
        ----------
        subject : Subject
        pose : Pose
        jitter : float
            As for `bone_turns`, in degrees.
        seed : int
            Of the jitter.
        overlap : float
            Tolerated fraction of vertices inside another part of the body, beyond that of the open stance.

        Returns
        -------
        vertices : (n, 3) array
            Standing on the ground.
        eased : float
            How far towards the open stance, 0 to 0.9.
        """
        rest, heads = subject.rest, subject.heads
        eased = 0.0
        for eased in np.arange(0.0, 1.0, 0.1):
            turns = bone_turns(blend(pose, _OPEN, eased), self.body.bones, heads, jitter, seed)
            if self._overlap(rest, heads, turns) <= subject.overlap + overlap:
                break
        posed = self._relax(rest[self.kept], self._coarse.posed(rest[self.kept], heads, turns))
        return _on_ground(posed), float(eased)

    def _overlap(
        self, rest: NDArray[np.float64], heads: NDArray[np.float64], turns: Mapping[str, NDArray[np.float64]]
    ) -> float:
        return overlap_share(self._proxy.posed(rest[self._proxy_kept], heads, turns), self._proxy_faces)


def rigid_relaxer(
    faces: NDArray[np.int32], count: int, *, hold: float = 0.1, rounds: int = 10
) -> Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]:
    """Make a function (rest, posed) -> relaxed, all (n, 3), for one connectivity; as-rigid-as-possible deformation.

    It lowers sum over edges |(p_i - p_j) - R_i (r_i - r_j)|^2 + hold sum over vertices |p_i - posed_i|^2 in turns over
    the rotations R_i and the positions p (Sorkine and Alexa 2007): every neighbourhood keeps its
    shape at rest up to a rotation, as skin does, while the pose stays. The matrix is factorised once.

    Parameters
    ----------
    faces : (m, 3) array
        Closed.
    count : int
        Number of vertices.
    hold : float
        Weight of the given pose.
    rounds : int
        Number of alternations.

    Returns
    -------
    callable
        The function; the matrix is factorised once.
    """
    from scipy import sparse
    from scipy.sparse.linalg import splu

    start, end = faces.ravel(), faces[:, [1, 2, 0]].ravel()  # closed: each edge once in either direction
    ones = np.ones(len(start))
    neighbours = sparse.csr_matrix((ones, (start, end)), shape=(count, count))
    degree = np.asarray(neighbours.sum(axis=1)).ravel()
    # an edge counts at both of its ends, hence the 2
    factor = splu((2 * (sparse.diags(degree) - neighbours) + hold * sparse.identity(count)).tocsc())
    gather = sparse.csr_matrix((ones, (start, np.arange(len(start)))), shape=(count, len(start)))

    def relax(rest: NDArray[np.float64], posed: NDArray[np.float64]) -> NDArray[np.float64]:
        before = rest[start] - rest[end]
        positions = posed
        for _ in range(rounds):
            after = positions[start] - positions[end]
            spread = gather @ (before[:, :, None] * after[:, None, :]).reshape(-1, 9)
            u, _, vt = np.linalg.svd(spread.reshape(-1, 3, 3))
            flip = np.sign(np.linalg.det(u @ vt))
            u[:, :, 2] *= flip[:, None]
            turn = np.transpose(u @ vt, (0, 2, 1))  # (n, 3, 3)
            wanted = np.einsum("eij,ej->ei", turn[start] + turn[end], before)
            positions = factor.solve(gather @ wanted + hold * posed)
        return positions

    return relax


def overlap_share(vertices: NDArray[np.float64], faces: NDArray[np.int32], offset: float = 0.0005) -> float:
    """Fraction of the vertices that lie inside another part of the body.

    A point just outside the surface (moved along the normal by `offset`, in the unit of the vertices) has winding
    number 0, unless another part covers it: then 1. w(x) = sum of the faces' solid angles / 4 pi.
    """
    points = np.ascontiguousarray(vertices, np.float64)
    triangles = np.ascontiguousarray(faces, np.int32)
    corners = points[triangles]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(points)
    for k in range(3):
        np.add.at(normals, triangles[:, k], cross)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    return float(np.mean(_winding(points + offset * normals, points, triangles) > 0.5))


def _on_ground(points: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = points.min(axis=0), points.max(axis=0)
    return points - [(low[0] + high[0]) / 2, low[1], (low[2] + high[2]) / 2]


@compiled()
def _winding(queries, points, faces):  # type: ignore[no-untyped-def]
    out = np.zeros(len(queries))
    for i in range(len(queries)):
        total = 0.0
        for f in range(len(faces)):
            ax = points[faces[f, 0], 0] - queries[i, 0]
            ay = points[faces[f, 0], 1] - queries[i, 1]
            az = points[faces[f, 0], 2] - queries[i, 2]
            bx = points[faces[f, 1], 0] - queries[i, 0]
            by = points[faces[f, 1], 1] - queries[i, 1]
            bz = points[faces[f, 1], 2] - queries[i, 2]
            cx = points[faces[f, 2], 0] - queries[i, 0]
            cy = points[faces[f, 2], 1] - queries[i, 1]
            cz = points[faces[f, 2], 2] - queries[i, 2]
            a = math.sqrt(ax * ax + ay * ay + az * az)
            b = math.sqrt(bx * bx + by * by + bz * bz)
            c = math.sqrt(cx * cx + cy * cy + cz * cz)
            volume = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
            below = a * b * c + (ax * bx + ay * by + az * bz) * c
            below += (bx * cx + by * cy + bz * cz) * a + (cx * ax + cy * ay + cz * az) * b
            total += math.atan2(volume, below)
        out[i] = total / (2.0 * math.pi)
    return out
