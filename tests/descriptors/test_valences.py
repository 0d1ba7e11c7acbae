"""The valence descriptor: it depends on the triangulation alone."""

from dataclasses import replace

import numpy as np
import pytest
from analytic import random_sphere
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from acnn.descriptors import VALENCE_LENGTH, valence_descriptors
from acnn.descriptors.valences import same_triangulation
from acnn.errors import InputError
from acnn.shapes import Mesh, PointCloud
from acnn.surface.surface import Surface, surface_of


def random_surface() -> Surface:
    return surface_of(random_sphere(300, 3))


def counts_and_hands(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, 9, 5) counts of vertices and (n, 9) handedness."""
    whole = values.astype(float) * np.repeat(np.maximum(6 * np.arange(9), 1), 6)
    parts = whole.reshape(len(values), 9, 6)
    return parts[:, :, :5], parts[:, :, 5]


def test_counts_are_those_of_the_vertices_so_many_edges_away() -> None:
    surface = random_surface()
    counts, _ = counts_and_hands(valence_descriptors(surface))
    edges = np.concatenate([surface.faces[:, [0, 1]], surface.faces[:, [1, 2]], surface.faces[:, [2, 0]]])
    graph = csr_matrix((np.ones(len(edges)), edges.T), shape=(300, 300))
    away = dijkstra(graph, directed=False, unweighted=True)
    valence = np.clip((away == 1).sum(axis=1), 4, 8)
    for ring in (0, 1, 4):
        for column in range(5):
            np.testing.assert_allclose(
                counts[:, ring, column], ((away == ring) & (valence == 4 + column)).sum(axis=1), atol=1e-4
            )


def test_only_the_triangulation_counts() -> None:
    surface = random_surface()
    moved = replace(surface, vertices=np.random.default_rng(0).normal(size=(300, 3)))
    np.testing.assert_array_equal(valence_descriptors(moved), valence_descriptors(surface))
    order = np.random.default_rng(1).permutation(300)
    renamed = replace(
        surface, faces=np.argsort(order)[surface.faces].astype(np.int32), vertices=surface.vertices[order]
    )
    np.testing.assert_allclose(valence_descriptors(renamed), valence_descriptors(surface)[order], atol=1e-6)


def test_a_mirrored_mesh_has_the_other_hand() -> None:
    surface = random_surface()
    counts, hands = counts_and_hands(valence_descriptors(surface))
    mirrored = replace(surface, faces=surface.faces[:, ::-1])
    mirrored_counts, mirrored_hands = counts_and_hands(valence_descriptors(mirrored))
    np.testing.assert_array_equal(mirrored_counts, counts)
    np.testing.assert_allclose(mirrored_hands, -hands, atol=1e-5)
    assert (abs(hands[:, 1:].sum(axis=1)) > 0.5).mean() > 0.5


def test_one_triangle_of_different_valences_turns_one_way() -> None:
    surface = random_surface()
    valence = np.clip(np.bincount(surface.faces.ravel()), 4, 8)  # closed: as many triangles as edges
    _, hands = counts_and_hands(valence_descriptors(surface))
    for vertex in range(0, 300, 50):
        total = 0.0
        for face in surface.faces[(surface.faces == vertex).any(axis=1)]:
            a, b, c = np.roll(valence[face], -int(np.argmin(valence[face])))
            total += 0.0 if len({a, b, c}) < 3 else (1 / 3 if b < c else -1 / 3)
        assert hands[vertex, 0] == pytest.approx(total, abs=1e-5)


def test_a_cloud_has_no_rings() -> None:
    with pytest.raises(InputError, match="point cloud"):
        valence_descriptors(replace(random_surface(), is_cloud=True))
    assert valence_descriptors(random_surface()).shape == (300, VALENCE_LENGTH)


def test_another_triangulation_is_noticed() -> None:
    mesh, other = random_sphere(300, 3), random_sphere(300, 4)
    order = np.random.default_rng(1).permutation(300)
    assert same_triangulation(mesh, Mesh(mesh.vertices, order[mesh.faces].astype(np.int32)))
    assert not same_triangulation(mesh, other)
    assert not same_triangulation(mesh, Mesh(mesh.vertices, mesh.faces[:-1]))
    assert not same_triangulation(mesh, PointCloud(mesh.vertices))
