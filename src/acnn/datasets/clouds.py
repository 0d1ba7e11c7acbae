"""Point clouds sampled from the surfaces of meshes, with exact ground truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from acnn.datasets.augment import resampled
from acnn.datasets.dataset import Dataset, Example, Sample
from acnn.errors import InputError
from acnn.shapes.mesh import BarycentricPoints, Mesh, PointCloud

DENSITY = 1.0
"""Points per vertex of the mesh."""

_CANDIDATES = 4
"""Random points per point that is kept."""


@dataclass(frozen=True, eq=False)
class CloudSample:
    """Reads a mesh and samples points from its surface, without normals.

    Attributes
    ----------
    read : callable
        Returns the mesh.
    reference : Mesh
        Whose vertices the labels are.
    seed : int
        Of the points.
    density : float
        Points per vertex of the mesh.
    """

    read: Callable[[], Example]
    reference: Mesh
    seed: int
    density: float = DENSITY

    def __call__(self) -> Example:
        """The cloud, with the labels of its points; raises InputError where the shape is a cloud already."""
        original = self.read()
        if not isinstance(original.shape, Mesh):
            raise InputError("A point cloud has no surface to sample: use meshes.")
        points = sample_points(original.shape, round(self.density * len(original.shape.vertices)), self.seed)
        cloud = PointCloud(points.interpolate(original.shape.vertices[original.shape.faces]))
        return resampled(original, cloud, points, self.reference)


def sample_points(mesh: Mesh, count: int, seed: int = 0) -> BarycentricPoints:
    """Sample points evenly from a surface: of random ones, each time the one farthest from those chosen before.

    Parameters
    ----------
    mesh : Mesh
    count : int
        Number of points.
    seed : int
        Random seed.

    Returns
    -------
    BarycentricPoints
        On the faces of the mesh.

    Raises
    ------
    InputError
        Where the count is below 1.
    """
    if count < 1:
        raise InputError(f"{count} points: at least one is needed.")
    random = np.random.default_rng(seed)
    corners = mesh.vertices[mesh.faces]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    face = random.choice(len(areas), _CANDIDATES * count, p=areas / areas.sum())
    # Uniform in a triangle: the square root makes up for its getting narrower towards a corner.
    root, along = np.sqrt(random.random(len(face))), random.random(len(face))
    weights = np.stack([1 - root, root * (1 - along), root * along], axis=1)
    candidates = BarycentricPoints(face.astype(np.int32), weights)
    positions = candidates.interpolate(corners)
    chosen = np.empty(count, np.int64)
    chosen[0] = 0
    distance = np.full(len(positions), np.inf)
    for k in range(1, count):
        difference = positions - positions[chosen[k - 1]]
        np.minimum(distance, np.einsum("ij,ij->i", difference, difference), out=distance)
        chosen[k] = distance.argmax()
    return candidates[chosen]


def clouds_of(dataset: Dataset, density: float = DENSITY, seed: int = 0) -> Dataset:
    """Sample a point cloud from every shape of a dataset; named `NAME_cloud`, and made when read.

    Parameters
    ----------
    dataset : Dataset
        Of meshes.
    density : float
        Points per vertex.
    seed : int
        Random seed.

    Returns
    -------
    Dataset
        With the same reference, numbers, splits and subjects.
    """
    made = []
    for i, sample in enumerate(dataset.samples):
        drawn = int(np.random.SeedSequence((seed, i, 3)).generate_state(1)[0])
        reader = CloudSample(sample.read, dataset.reference, drawn, density)
        made.append(Sample(f"{sample.name}_cloud", reader, sample.split, sample.subject, sample.number))
    return replace(dataset, name=f"{dataset.name}+clouds", samples=tuple(made))
