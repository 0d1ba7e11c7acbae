"""Classes of vertices from the class probabilities of a network, regularised over the surface.

A network labels every vertex by itself: it leaves specks, and takes a left upper arm for a right one where the two look
alike, although the hand at its end is labelled correctly. Neighbouring vertices decide together: the classes c minimise

    E(c) = sum_i -a_i log p_i(c_i) + sum_(i,j) l_ij V(c_i, c_j)

over vertices i of area a_i and edges (i, j), with l_ij the length of the border between the cells of i and j. V is 0
for equal classes, `BORDER` for classes that touch on the reference, and `APART` for those that do not.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from acnn.correspondence.soft_map import SoftMap
from acnn.shapes.topology import mesh_edges
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

BORDER, APART = 2.0, 20.0
"""Costs of a border between two classes, in units of length: specks with a radius of up to twice that are removed where
the odds against them are e to 1."""

LEAST = 1e-4
"""Least probability of a class, so that no vertex is certain."""

ROUNDS = 1000
"""Rounds after which the search ends; some 20 are usual."""


def class_borders(classes: IntArray | None, faces: IntArray, count: int) -> FloatArray:
    """(count, count) cost of a border between two classes, from a labelled surface.

    Parameters
    ----------
    classes : (m,) int array or None
        Class of each vertex, -1 unknown; None where no surface is labelled: then any two classes may touch.
    faces : (f, 3) int array
        Triangles.
    count : int
        Number of classes.

    Returns
    -------
    (count, count) array
        0 for equal classes, `BORDER` for those with a common edge, `APART` for others.
    """
    costs = np.full((count, count), BORDER if classes is None else APART)
    if classes is not None:
        ends = np.asarray(classes)[mesh_edges(faces).vertices]
        ends = ends[(ends >= 0).all(axis=1)]
        costs[ends[:, 0], ends[:, 1]] = costs[ends[:, 1], ends[:, 0]] = BORDER
    np.fill_diagonal(costs, 0.0)
    return costs


def label_classes(soft_map: SoftMap, surface: Surface, costs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Class of each vertex.

    Parameters
    ----------
    soft_map : SoftMap
        Probabilities of all classes at n vertices.
    surface : Surface
        In normalised units.
    costs : (k, k) array
        Of borders between classes, as `class_borders` returns them.

    Returns
    -------
    classes : (n,) int32 array
    confidence : (n,) array
        The network's probability of that class.
    """
    n, k = len(soft_map.vertices), soft_map.reference_size
    probabilities = np.zeros((n, k))
    np.put_along_axis(probabilities, soft_map.vertices.astype(np.int64), soft_map.probabilities.astype(float), axis=1)
    unary = -surface.vertex_areas[:, None] * np.log(np.maximum(probabilities, LEAST))
    edges = mesh_edges(surface.faces).vertices
    borders = _border_lengths(edges, surface)
    classes = unary.argmin(axis=1)
    # Specks of classes that do not touch would push each other away: they are removed first.
    for costs_now in (np.minimum(costs, BORDER), costs):
        classes = _least_energy(classes, unary, edges, borders, costs_now)
    return classes.astype(np.int32), probabilities[np.arange(n), classes]


def _border_lengths(edges: IntArray, surface: Surface) -> FloatArray:
    """(e,) length of the border between the cells of two neighbours: of six around a vertex, as a hexagon has."""
    lengths = np.linalg.norm(surface.vertices[edges[:, 0]] - surface.vertices[edges[:, 1]], axis=1)
    cells = surface.vertex_areas[edges].sum(axis=1)
    degree = np.bincount(edges.ravel(), minlength=len(surface.vertices))[edges].sum(axis=1)
    return 4.0 * cells / np.maximum(degree * lengths, np.finfo(float).tiny)


def _least_energy(
    classes: IntArray, unary: FloatArray, edges: IntArray, weights: FloatArray, costs: FloatArray
) -> IntArray:
    """(n,) classes that no change of a connected region of one class improves.

    Classes form regions. In each round every region takes another class if that lowers the energy, and lowers it more
    than a change of a neighbouring region would; regions of one class that now touch become one.
    """
    n = len(unary)
    for _ in range(ROUNDS):
        same = edges[classes[edges[:, 0]] == classes[edges[:, 1]]]
        count, region = connected_components(csr_matrix((np.ones(len(same)), same.T), shape=(n, n)), directed=False)
        of_region: IntArray = np.zeros(count, dtype=np.int64)
        of_region[region] = classes
        members = csr_matrix((np.ones(n), (region, np.arange(n))), shape=(count, n))
        ends = region[edges]
        apart = ends[:, 0] != ends[:, 1]
        borders = csr_matrix((weights[apart], ends[apart].T), shape=(count, count))
        borders = borders + borders.T
        energies = members @ unary + borders @ costs[of_region]
        gains = energies[np.arange(count), of_region] - energies.min(axis=1)
        # ties between neighbours go to the lower number
        order = np.lexsort((np.arange(count), -gains))
        rank = np.empty(count)
        rank[order] = np.arange(count)
        first = np.full(count, np.inf)
        np.minimum.at(first, ends[apart, 0], rank[ends[apart, 1]])
        np.minimum.at(first, ends[apart, 1], rank[ends[apart, 0]])
        moved = (gains > 1e-9) & (rank < first)
        if not moved.any():
            break
        of_region[moved] = energies[moved].argmin(axis=1)
        classes = of_region[region]
    return classes
