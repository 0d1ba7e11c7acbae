"""Skins of glTF files: reading the joints and weights of a scene, and the parts of a document that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from acnn.shapes.formats.gltf_buffers import Buffers
from acnn.shapes.formats.raw import FormatError
from acnn.shapes.skin import Skin

MAX_JOINTS = 65535
"""Joints of a vertex are stored in at most 16 bits."""


class VertexBlock(NamedTuple):
    """Vertices of a scene that one primitive of one node brought in."""

    node: int
    attributes: dict[str, int]
    vertices: int


def scene_skin(document: dict[str, Any], arrays: Buffers, blocks: Sequence[VertexBlock]) -> Skin:
    """The skin of a scene.

    Parameters
    ----------
    document : dict[str, Any]
        Validated with the rules of skins.
    arrays : Buffers
        Of the document.
    blocks : sequence of VertexBlock
        Of all vertices, in the order of the file.

    Returns
    -------
    Skin
        Weights for every vertex of the file.

    Raises
    ------
    FormatError
        Where there is none, where there are several, or where it is damaged.
    """
    nodes = document.get("nodes", [])
    used = {nodes[block.node]["skin"] for block in blocks if block.node >= 0 and "skin" in nodes[block.node]}
    if not used:
        raise FormatError("it has no skin: no mesh of its scene is attached to joints. Export it with its skeleton")
    if len(used) > 1:
        raise FormatError(f"its meshes have {len(used)} different skins. Export them with one skeleton")
    skin = document["skins"][used.pop()]
    joints: list[int] = skin["joints"]
    if not 0 < len(joints) <= MAX_JOINTS or len(set(joints)) < len(joints):
        raise FormatError(f"its skin has {len(joints)} joints, some of them twice or too many")
    names = tuple(nodes[joint].get("name", f"joint {number}") for number, joint in enumerate(joints))
    weights = _weights(nodes, arrays, blocks, len(joints))
    return Skin(names, _parents(nodes, joints), _transforms(skin, arrays, len(joints)), weights)


def skin_nodes(skin: Skin, first: int) -> list[dict[str, Any]]:
    """Nodes of a document for the joints of a skin, in its pose; `first` is the number of the first one."""
    nodes: list[dict[str, Any]] = []
    for number, (name, parent) in enumerate(zip(skin.names, skin.parents.tolist(), strict=True)):
        matrix = skin.transforms[number]
        if parent >= 0:
            matrix = np.linalg.solve(skin.transforms[parent], matrix)
        matrix = np.vstack([matrix[:3], [0.0, 0.0, 0.0, 1.0]])
        node: dict[str, Any] = {"name": name, "matrix": matrix.T.reshape(-1).tolist()}
        children = np.flatnonzero(skin.parents == number)
        if len(children):
            node["children"] = (first + children).tolist()
        nodes.append(node)
    return nodes


def inverse_bind_matrices(skin: Skin) -> NDArray[np.float32]:
    """(joints, 16) matrices from coordinates of the mesh to those of each joint, column after column."""
    inverse = np.linalg.inv(skin.transforms)
    inverse[:, 3] = [0.0, 0.0, 0.0, 1.0]
    return np.ascontiguousarray(inverse.transpose(0, 2, 1).reshape(-1, 16), "<f4")


def _weights(nodes: list[dict[str, Any]], arrays: Buffers, blocks: Sequence[VertexBlock], joints: int) -> sp.csr_array:
    """(n, joints) weights of all vertices of the scene."""
    rows, columns, values, begin = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)], 0
    for node, attributes, count in blocks:
        number = 0
        while "skin" in nodes[node] and f"JOINTS_{number}" in attributes:
            joint = arrays.accessor(attributes[f"JOINTS_{number}"])
            weight = arrays.attribute(attributes.get(f"WEIGHTS_{number}"), count, (4,))
            if weight is None or joint.shape != weight.shape or joint.dtype.kind != "u":
                raise FormatError(f"JOINTS_{number} and WEIGHTS_{number} of node {node} do not fit each other")
            if not np.isfinite(weight).all() or weight.min(initial=0) < 0:
                raise FormatError(f"WEIGHTS_{number} of node {node} holds numbers that are negative or not finite")
            vertex, slot = np.nonzero(weight)
            if len(vertex) and int(joint[vertex, slot].max()) >= joints:
                raise FormatError(f"JOINTS_{number} of node {node} uses joint {joint.max()}, but there are {joints}")
            rows.append(begin + vertex)
            columns.append(joint[vertex, slot].astype(np.int64))
            values.append(weight[vertex, slot])
            number += 1
        begin += count
    at = np.concatenate(rows), np.concatenate(columns)
    weights = sp.csr_array((np.concatenate(values), at), shape=(begin, joints))
    if not weights.nnz:
        raise FormatError("no vertex has a weight of its skin")
    total = weights.sum(axis=1)
    return sp.csr_array(sp.diags_array(1.0 / np.where(total > 0, total, 1.0)) @ weights)


def _parents(nodes: list[dict[str, Any]], joints: list[int]) -> NDArray[np.int32]:
    """(joints,) nearest joint above each joint; nodes between them move nothing in the pose of the skin."""
    above = {child: number for number, node in enumerate(nodes) for child in node.get("children", [])}
    place = {joint: number for number, joint in enumerate(joints)}
    parents = np.full(len(joints), -1, np.int32)
    for number, joint in enumerate(joints):
        seen, node = {joint}, above.get(joint)
        while node is not None and node not in place:
            if node in seen:
                raise FormatError(f"node {node} is above itself: the skeleton is damaged")
            seen.add(node)
            node = above.get(node)
        if node == joint:
            raise FormatError(f"node {node} is above itself: the skeleton is damaged")
        parents[number] = -1 if node is None else place[node]
    steps, at = 0, parents.copy()
    while (at >= 0).any():
        at, steps = np.where(at >= 0, parents[at], -1).astype(np.int32), steps + 1
        if steps > len(joints):
            raise FormatError("joints are above themselves: the skeleton is damaged")
    return parents


def _transforms(skin: dict[str, Any], arrays: Buffers, joints: int) -> NDArray[np.float64]:
    """(joints, 4, 4) transforms of the joints in the pose of the skin."""
    if "inverseBindMatrices" not in skin:
        return np.tile(np.eye(4), (joints, 1, 1))
    inverse = arrays.floats(skin["inverseBindMatrices"])
    if inverse.shape[1] != 16 or len(inverse) < joints:
        raise FormatError(f"its inverse bind matrices have shape {inverse.shape}, but ({joints}, 16) is needed")
    matrices = inverse[:joints].reshape(-1, 4, 4).transpose(0, 2, 1)
    with np.errstate(all="ignore"):
        sizes = np.abs(np.linalg.det(matrices[:, :3, :3])) if np.isfinite(matrices).all() else np.zeros(joints)
    if not (sizes > 0).all() or not np.isfinite(sizes).all() or (matrices[:, 3] != [0, 0, 0, 1]).any():
        raise FormatError("an inverse bind matrix of its skin is not an invertible affine transform")
    return np.asarray(np.linalg.inv(matrices), np.float64)
