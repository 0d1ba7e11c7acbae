"""The anny body model as arrays: a closed surface, its bones, and how the bones move it.

Anny (Apache-2.0, its data CC0 from MakeHuman) is the optional extra `[humans]`. Of its meshes only the outer skin is
used: eyes and tongue are dropped, eye sockets and mouth are closed. Axes here: x to the body's left, y up, z to the
front; metres.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.datasets.builtin import PHENOTYPES
from acnn.errors import InputError


@dataclass(frozen=True, eq=False)
class Body:
    """A skin with bones.

    Attributes
    ----------
    faces : (m, 3) int32 array
        Closed, genus 0, counter-clockwise from outside.
    bones : tuple[str, ...]
        Names.
    parents : (b,) array
        The bone each one hangs on, -1 for the root (parents come first).
    weights : (n, b) array
        How much each bone moves each vertex, rows sum to 1.
    mirror : (n,) array
        The vertex on the other side of the body.
    fine : (n,) array
        Wanted relative edge length: smaller where there is detail (hands, feet, head).
    """

    faces: NDArray[np.int32]
    bones: tuple[str, ...]
    parents: NDArray[np.int64]
    weights: NDArray[np.float64]
    mirror: NDArray[np.int64]
    fine: NDArray[np.float64]
    _model: Any
    _grow: Any  # sparse (n, anny vertices)

    def rest(self, phenotypes: Mapping[str, float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The unposed body of one subject: vertices (n, 3) and the joint of each bone, (b, 3)."""
        import torch

        identity = torch.eye(4, dtype=torch.float64)[None, None].repeat(1, len(self.bones), 1, 1)
        given = {name: float(phenotypes.get(name, 0.5)) for name in PHENOTYPES}
        with torch.no_grad():
            out = self._model(pose_parameters=identity, phenotype_kwargs=given)
        return (
            self._grow @ _upright(out["rest_vertices"][0].numpy()),
            _upright(out["rest_bone_heads"][0].numpy()),
        )

    def posed(
        self, vertices: NDArray[np.float64], heads: NDArray[np.float64], turns: Mapping[str, NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Bend the body: each named bone turns about its head by a rotation (3, 3) in the axes of the rest pose.

        x -> sum_b w_b (W_b x + t_b) with W_b = W_parent R_b, the bones' motions blended linearly.
        """
        count = len(self.bones)
        rotation, shift = np.empty((count, 3, 3)), np.empty((count, 3))
        for b, (name, parent) in enumerate(zip(self.bones, self.parents, strict=True)):
            turn = np.asarray(turns.get(name, np.eye(3)))
            about = heads[b] - turn @ heads[b]
            if parent < 0:
                rotation[b], shift[b] = turn, about
            else:
                rotation[b] = rotation[parent] @ turn
                shift[b] = rotation[parent] @ about + shift[parent]
        blended = np.einsum("nb,bij->nij", self.weights, rotation)
        return np.einsum("nij,nj->ni", blended, vertices) + self.weights @ shift


def load_body() -> Body:
    """Load anny and make its skin a closed, smooth surface of about 50,000 vertices.

    The first load parses the model's files (two minutes), later ones take a second. Raises `InputError` where anny is
    not installed.
    """
    try:
        import anny
        import torch
        from anny.face_segmentation import get_face_segmentation_mask
    except ImportError as problem:
        raise InputError("Making humans needs the anny body model: pip install 'acnn[humans]'.") from problem
    from scipy import sparse

    model = anny.Anny(skinning_method="lbs").to(dtype=torch.float64)
    faces = np.asarray(model.faces, np.int64)
    inner = get_face_segmentation_mask(model, ["mouth_cavity", "eye_cavity.L", "eye_cavity.R"]).numpy()
    count = len(model.template_vertices)
    skin = _largest_component(faces[_in_component(faces, count) & ~inner], count)
    used = np.unique(skin)
    number = np.full(count, -1)
    number[used] = np.arange(len(used))
    pick = sparse.csr_matrix((np.ones(len(used)), (np.arange(len(used)), used)), shape=(len(used), count))
    closed, caps = close_loops(number[skin], len(used))
    grow = sparse.vstack([sparse.identity(len(used)), caps]).tocsr() @ pick
    fine_faces, smooth = _loop_subdivision(closed, grow.shape[0])
    grow = (smooth @ grow).tocsr()

    bones = tuple(model.bone_labels)
    indices, values = model.vertex_bone_indices.numpy(), model.vertex_bone_weights.numpy()
    weights = np.zeros((count, len(bones)))
    np.add.at(weights, (np.arange(count)[:, None], indices), values)
    weights = np.asarray(grow @ weights)
    weights /= weights.sum(axis=1, keepdims=True)
    template = grow @ _upright(model.template_vertices.numpy())
    return Body(
        faces=fine_faces.astype(np.int32),
        bones=bones,
        parents=np.asarray(model.bone_parents, np.int64),
        weights=weights,
        mirror=_mirror(template),
        fine=_detail(bones, weights),
        _model=model,
        _grow=grow,
    )


def _upright(points: NDArray[np.float64]) -> NDArray[np.float64]:
    # anny has z up and faces -y
    return np.stack([points[:, 0], points[:, 2], -points[:, 1]], axis=1).astype(np.float64)


def _detail(bones: tuple[str, ...], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    wanted = {"finger": 0.42, "metacarpal": 0.55, "wrist": 0.7, "toe": 0.6, "foot": 0.75, "head": 0.75, "neck03": 0.85}
    per_bone = np.ones(len(bones))
    for start, size in wanted.items():
        for b, name in enumerate(bones):
            if name.startswith(start):
                per_bone[b] = size
    return weights @ per_bone


def _mirror(template: NDArray[np.float64]) -> NDArray[np.int64]:
    from scipy.spatial import cKDTree

    middle = 0.5 * (template[:, 0].min() + template[:, 0].max())
    return cKDTree(template).query(template * [-1, 1, 1] + [2 * middle, 0, 0])[1].astype(np.int64)


def _components(faces: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    start, end = faces.ravel(), faces[:, [1, 2, 0]].ravel()
    graph = sparse.coo_matrix((np.ones(len(start)), (start, end)), shape=(count, count))
    return connected_components(graph, directed=False)[1]


def _in_component(faces: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    label = _components(faces, count)
    return label[faces[:, 0]] == np.bincount(label).argmax()


def _largest_component(faces: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    return faces[_in_component(faces, count)]


def close_loops(faces: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], Any]:
    """Close every hole with a fan about the mean of its rim; also the means as a sparse (holes, count) matrix."""
    from scipy import sparse

    directed = set(map(tuple, np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).tolist()))
    following = {b: a for a, b in directed if (b, a) not in directed}
    fans, rows, columns, values = [], [], [], []
    holes = 0
    for first in sorted(following):
        if first not in following:
            continue
        rim = [first]
        while (step := following.pop(rim[-1])) != first:
            rim.append(step)
        centre = count + holes
        fans += [(a, b, centre) for a, b in zip(rim, [*rim[1:], first], strict=True)]
        rows += [holes] * len(rim)
        columns += rim
        values += [1.0 / len(rim)] * len(rim)
        holes += 1
    means = sparse.csr_matrix((values, (rows, columns)), shape=(holes, count))
    return np.concatenate([faces, np.array(fans, np.int64).reshape(-1, 3)]), means


def _loop_subdivision(faces: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], Any]:
    """One step of Loop's scheme on a closed mesh: faces (4 m, 3), and new vertices as a sparse (n + edges, n)."""
    from scipy import sparse

    start, end = faces.ravel(), faces[:, [1, 2, 0]].ravel()
    opposite = faces[:, [2, 0, 1]].ravel()
    pairs = np.stack([np.minimum(start, end), np.maximum(start, end)], axis=1)
    edges, edge_of = np.unique(pairs, axis=0, return_inverse=True)
    edge_of = edge_of.ravel()
    k = len(edges)
    new = sparse.coo_matrix((np.full(len(start), 1 / 8), (edge_of, opposite)), shape=(k, count))
    ends = sparse.coo_matrix((np.full(2 * k, 3 / 8), (np.repeat(np.arange(k), 2), edges.ravel())), shape=(k, count))
    valence = np.bincount(edges.ravel(), minlength=count)
    beta = (5 / 8 - (3 / 8 + np.cos(2 * np.pi / valence) / 4) ** 2) / valence
    # neighbours weigh beta each, the old place the rest
    ring = sparse.coo_matrix((beta[start], (start, end)), shape=(count, count))
    old = sparse.diags(1 - valence * beta) + ring
    middle = count + edge_of.reshape(-1, 3)  # edges (0, 1), (1, 2), (2, 0) of each face
    a, b, c = faces.T
    ab, bc, ca = middle.T
    parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    finer = np.concatenate([np.stack(part, axis=1) for part in parts])
    return finer, sparse.vstack([old, (new + ends)]).tocsr()
