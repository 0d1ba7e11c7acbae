"""A part in its whole shape's unit: kernels and SHOT far from the cut are the whole shape's, near it they are not."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import cKDTree

from acnn.datasets import builtin_human, open_dataset
from acnn.datasets.parts import cut_part
from acnn.descriptors.shot import shot
from acnn.patches import PatchSettings, build_patches
from acnn.shapes import Mesh
from acnn.shapes.topology import mesh_edges
from acnn.surface import Surface, geodesics_from, surface_of

SETTINGS = PatchSettings(angles=2, scales=(3.0, 12.0), keep=0.99)
needs_data = pytest.mark.skipif(
    not (Path(os.environ.get("ACNN_DATA", "")) / "shrec16_partial" / "null").is_dir(),
    reason="ACNN_DATA holds no shrec16_partial",
)


def rim(surface: Surface) -> np.ndarray:
    edges = mesh_edges(surface.faces)
    return np.unique(edges.vertices[edges.counts == 1])


def kernel_difference(whole: Surface, part: Surface, kept: np.ndarray) -> np.ndarray:
    """(k, angles, scales) sum |row of the part - row of the whole|; rows have mass 1."""
    full, cut = (build_patches(surface, SETTINGS, threads=1) for surface in (whole, part))
    difference = np.empty((len(kept), SETTINGS.angles, len(SETTINGS.scales)))
    for angle in range(SETTINGS.angles):
        for scale in range(len(SETTINGS.scales)):
            there = full.matrix(angle, scale)[kept].toarray()
            there[:, kept] -= cut.matrix(angle, scale).toarray()
            difference[:, angle, scale] = np.abs(there).sum(axis=1)
    return difference


def check_part(whole_mesh: Mesh, part_mesh: Mesh, kept: np.ndarray, unit: float) -> None:
    whole, part = surface_of(whole_mesh, unit), surface_of(part_mesh, unit)
    from_cut = geodesics_from(part, rim(part)).min(axis=0)
    rows = kernel_difference(whole, part, kept)
    for scale, t in enumerate(SETTINGS.scales):
        reach = 4 * np.sqrt(2 * t)  # along its axis the kernel has variance 2 t
        far, near = rows[from_cut > max(reach, 12.0), :, scale], rows[from_cut == 0, :, scale]
        assert len(far) > 100
        assert np.median(far) < 1e-3
        assert np.percentile(far, 99) < 0.02
        assert np.median(near) > 0.2  # the heat that would have left is turned back
    # SHOT looks into a ball, so that what is missing across a gap counts as well
    missing = np.setdiff1d(np.arange(len(whole.vertices)), kept)
    lost = np.concatenate([whole.vertices[missing], whole.vertices[kept[rim(part)]]])
    away = cKDTree(lost).query(whole.vertices[kept])[0]
    wanted = shot(whole, 12.0, threads=1)[kept]
    off = np.linalg.norm(wanted - shot(part, 12.0, threads=1), axis=1)
    assert (away > 12).sum() > 100
    assert off[away > 12].max() < 1e-4
    assert np.median(off[away < 3]) > 0.5
    own = surface_of(part_mesh)
    if abs(own.unit / unit - 1) > 0.05:  # a part's own diameter would have made it another size
        off = np.linalg.norm(wanted - shot(own, 12.0, threads=1), axis=1)
        assert np.median(off[away > 12]) > 0.05


@pytest.mark.parametrize(("kind", "seed"), [("cuts", 3), ("holes", 1)])
def test_part_of_a_human(kind: str, seed: int) -> None:
    whole = builtin_human()
    missing = 0.3 if kind == "cuts" else 0.05  # holes of 30 % leave hardly a place far from one
    part, kept = cut_part(whole, kind, missing, seed)
    check_part(whole, part, kept, surface_of(whole).unit)


@needs_data
def test_published_part() -> None:
    data = open_dataset("shrec16/cuts/wolf")
    example = data.select("1").samples[0].read()  # its vertices are its whole shape's, in the same pose
    order = np.argsort(example.labels)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    part = Mesh(example.shape.vertices[order], place[example.shape.faces].astype(np.int32))
    check_part(data.reference, part, example.labels[order].astype(np.int64), data.unit)
