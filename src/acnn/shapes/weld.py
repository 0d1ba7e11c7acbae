"""Vertices at exactly the same place: found, and joined where the surface demands it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.topology import IntArray, groups, mesh_edges, next_corner


def same_place(vertices: NDArray[np.float64]) -> IntArray:
    """For each vertex the first one with exactly the same coordinates (0.0 and -0.0 are the same), itself if alone.

    A vertex that is not finite lies nowhere, so it is alone.
    """
    n = len(vertices)
    bits = np.ascontiguousarray(vertices + 0.0).view(np.uint64)
    # Sorting one mixed word is several times faster than sorting triples; a run of equal words is checked below.
    word = bits[:, 0] * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(29))) + bits[:, 1] * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(32))) + bits[:, 2] * np.uint64(0x94D049BB133111EB)
    order = np.argsort(word, kind="stable")
    fresh, clash = _runs(bits, order, word)
    if clash:
        order = np.lexsort((bits[:, 2], bits[:, 1], bits[:, 0]))
        fresh, _ = _runs(bits, order, None)
    result = np.empty(n, np.int64)
    result[order] = order[fresh][np.cumsum(fresh) - 1]
    nowhere = np.flatnonzero(~np.isfinite(vertices).all(axis=1))
    result[nowhere] = nowhere
    return result


def stitches(faces: NDArray[np.integer], place: IntArray, vertices_in_use_once: bool) -> IntArray:
    """Which vertices are one, as a label (n,), each the smallest vertex of its group.

    A soup, whose every face has vertices of its own, is joined at every place where vertices coincide. In any other
    mesh only boundary edges are joined, in pairs: two edges between the same two places, running in opposite directions
    as neighbours do, and no third edge there. So texture seams close, while sheets that lie on each other stay apart.
    """
    n = len(place)
    if vertices_in_use_once:
        return place
    pairs_a, pairs_b = _zero_length_edges(faces, place)
    if (place != np.arange(n)).any():
        edge_a, edge_b = _boundary_pairs(faces, place)
        pairs_a, pairs_b = np.concatenate([pairs_a, edge_a]), np.concatenate([pairs_b, edge_b])
    if len(pairs_a) == 0:
        return np.arange(n)
    count, label = groups(pairs_a, pairs_b, n)
    smallest = np.full(count, n, np.int64)
    np.minimum.at(smallest, label, np.arange(n))
    return smallest[label]


def is_soup(faces: NDArray[np.integer], place: IntArray) -> bool:
    """Whether no two faces share a vertex although some meet at the same places."""
    if len(faces) < 2:
        return False
    used = np.bincount(faces.reshape(-1), minlength=len(place))
    if used.max() > 1:
        return False
    corners = place[faces.reshape(-1)]
    return len(np.unique(corners)) < len(corners)


def _runs(bits: NDArray[np.uint64], order: IntArray, word: NDArray[np.uint64] | None) -> tuple[NDArray[np.bool_], bool]:
    """Where a new place begins in the sorted order, and whether two places share one word."""
    differs = np.ones(len(order), bool)
    if word is None:
        differs[1:] = (bits[order[1:]] != bits[order[:-1]]).any(axis=1)
        return differs, False
    word = word[order]
    alike = np.flatnonzero(word[1:] == word[:-1])
    same = (bits[order[alike + 1]] == bits[order[alike]]).all(axis=1)
    differs[alike[same] + 1] = False
    return differs, not bool(same.all())


def _zero_length_edges(faces: NDArray[np.integer], place: IntArray) -> tuple[IntArray, IntArray]:
    # Joining their ends collapses the two flat faces at such an edge without opening a slit.
    flat = faces.astype(np.int64)
    begin, end = flat.reshape(-1), np.roll(flat, -1, axis=1).reshape(-1)
    zero = (place[begin] == place[end]) & (begin != end)
    return begin[zero], end[zero]


def _boundary_pairs(faces: NDArray[np.integer], place: IntArray) -> tuple[IntArray, IntArray]:
    flat = faces.astype(np.int64).reshape(-1)
    half = mesh_edges(faces, len(place)).boundary()
    shared = np.bincount(place, minlength=len(place))[place] > 1
    begin, end = flat[half], flat[next_corner(half)]
    possible = (shared[begin] | shared[end]) & (place[begin] != place[end])
    half, begin, end = half[possible], begin[possible], end[possible]
    low, high = np.minimum(place[begin], place[end]), np.maximum(place[begin], place[end])
    key = low * len(place) + high
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(key[order]) != 0)) if len(key) else np.zeros(0, np.int64)
    counts = np.diff(np.append(starts, len(key)))
    first, second = order[starts[counts == 2]], order[starts[counts == 2] + 1]
    third = place[flat[next_corner(next_corner(half))]]
    neighbours = (place[begin[first]] == place[end[second]]) & (third[first] != third[second])
    first, second = first[neighbours], second[neighbours]
    return np.concatenate([begin[first], end[first]]), np.concatenate([end[second], begin[second]])
