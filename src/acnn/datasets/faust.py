"""MPI FAUST: the registrations in their official layout, and remeshed FAUST (Ren et al. 2018)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acnn.datasets.dataset import Dataset, Example, Sample, UnrelatedError, labels_as_loaded, vertex_difference
from acnn.datasets.labels import pair_labels, read_vts
from acnn.errors import InputError
from acnn.shapes.load import load
from acnn.shapes.mesh import Mesh
from acnn.types import IntArray

REGISTRATIONS = Path("training/registrations")
VERTICES = 6890
HOW_TO_GET = (
    "FAUST may not be redistributed: register at "
    "https://faust-leaderboard.is.tuebingen.mpg.de (free for research), accept the licence, "
    "download MPI-FAUST.zip and unpack it, so that "
    "FOLDER/training/registrations/tr_reg_000.ply to tr_reg_099.ply exist. Then give FOLDER, or set ACNN_DATA to the "
    "folder that contains it as 'faust'."
)


@dataclass(frozen=True)
class Registration:
    """Reads one registration: vertex i of its file is vertex i of the reference's file."""

    path: str
    reference: str

    def __call__(self) -> Example:
        """The mesh, labelled with the vertices of the reference as loaded."""
        mesh, reference = load(self.path, kind="mesh"), load(self.reference, kind="mesh")
        assert mesh.source is not None
        if len(mesh.source.from_file) != VERTICES:
            raise InputError(
                f"{self.path}: has {len(mesh.source.from_file)} vertices; FAUST registrations have {VERTICES}. "
                "Take the files of training/registrations, not the scans."
            )
        if different := vertex_difference(mesh, reference):
            raise UnrelatedError(
                f"{self.path}: has {different}, so its vertices are not those of {Path(self.reference).name}. Take "
                "FAUST's own training/registrations, or name shapes of your own differently than tr_reg_NNN.ply."
            )
        return Example(mesh, labels_as_loaded(np.arange(VERTICES), mesh, reference))


@dataclass(frozen=True)
class RemeshedRegistration:
    """Reads one remeshed registration, with ground truth from `sampleID.vts`.

    Attributes
    ----------
    shape, rows, mirrored_rows, sample_ids : str
        Its .off, .vts, .sym.vts ('' where there is none) and sampleID.vts.
    reference : str
        The registration whose vertices the labels are.
    """

    shape: str
    rows: str
    mirrored_rows: str
    sample_ids: str
    reference: str

    def __call__(self) -> Example:
        """The mesh with pairs and labels, and mirrored labels where known."""
        mesh, reference = load(self.shape, kind="mesh"), load(self.reference, kind="mesh")
        assert mesh.source is not None
        count = len(mesh.source.from_file)
        there = read_vts(Path(self.sample_ids), VERTICES)
        listed = [read_vts(Path(p), count) for p in (self.rows, self.mirrored_rows) if p]
        for path, rows in zip((self.rows, self.mirrored_rows), listed, strict=False):
            if len(rows) != len(there):
                raise InputError(f"{path}: has {len(rows)} rows, but {self.sample_ids} has {len(there)}.")
        pairs, labels = pair_labels(listed[0], there, mesh, reference)
        mirrored = pair_labels(listed[1], there, mesh, reference)[1] if self.mirrored_rows else None
        return Example(mesh, labels, pairs=pairs, mirrored=mirrored)


def find_registrations(root: Path) -> Path | None:
    """The folder of tr_reg_*.ply at or below a FAUST folder, or one that contains it as `faust` or `MPI-FAUST`."""
    for below in (REGISTRATIONS, "faust" / REGISTRATIONS, "MPI-FAUST" / REGISTRATIONS, Path("registrations"), Path()):
        if any((root / below).glob("tr_reg_*.ply")):
            return root / below
    return None


def open_faust(root: Path) -> Dataset:
    """Open the FAUST registrations: one connectivity, ten poses of each subject, 080-099 for testing as in the paper.

    The reference is tr_reg_000, or the first registration where that is missing; its mirror is that of
    `mirror_of_halves`.

    Parameters
    ----------
    root : Path
        The FAUST folder.

    Returns
    -------
    Dataset
        Shapes are read when they are needed.

    Raises
    ------
    InputError
        Where FAUST is not found, with how to get it.
    """
    folder = find_registrations(root)
    if folder is None:
        raise InputError(f"{root}: no FAUST: looked for {root / REGISTRATIONS / 'tr_reg_*.ply'}. {HOW_TO_GET}")
    reference, samples = _reference_path(folder), []
    for path in sorted(folder.glob("tr_reg_*.ply")):
        if found := re.fullmatch(r"tr_reg_(\d+)", path.stem):
            number = int(found.group(1))
            reader = Registration(str(path), str(reference))
            samples.append(Sample(path.stem, reader, "train" if number < 80 else "test", number // 10, number))
    if not samples:
        raise InputError(f"{folder}: contains no tr_reg_NNN.ply. {HOW_TO_GET}")
    mesh = _reference(folder)
    return Dataset("faust", mesh, tuple(samples), mirror_of_halves(mesh.faces, len(mesh.vertices)))


def mirror_of_halves(faces: IntArray, vertices: int) -> IntArray | None:
    """The vertex on the other side of the body, from how the triangles of FAUST's template are listed.

    The template was modelled as one half of a body and mirrored: the second half of its face list has the mirror images
    of the first half, in the same order. Polygon by polygon, that is: most are quadrilaterals, listed as two triangles,
    and their diagonals are not mirrored, so that the triangulation itself has no symmetry. Two triangles that follow
    each other and share an edge in both halves of the list are one polygon here, and the mirror image of a vertex
    is the vertex at which the mirror images of its polygons meet.

    Parameters
    ----------
    faces : (m, 3) array
        In the order of the file.
    vertices : int
        How many there are.

    Returns
    -------
    array or None
        (vertices,) an involution that maps polygons to polygons and keeps some vertices where they are, those of the
        plane of symmetry; None where the faces have no such order.
    """
    half = len(faces) // 2
    if not half or len(faces) != 2 * half:
        return None
    halves = faces.reshape(2, half, 3)
    common = (halves[:, :-1, :, None] == halves[:, 1:, None, :]).sum(axis=(2, 3))  # (2, half - 1) corners
    joined = [*(common == 2).all(axis=0).tolist(), False]
    polygons, count, face = np.empty(half, dtype=np.int64), 0, 0
    while face < half:
        size = 2 if joined[face] else 1
        polygons[face : face + size] = count
        count, face = count + 1, face + size
    around: list[set[int]] = [set() for _ in range(vertices)]
    for triangle, polygon in zip(faces.tolist(), np.concatenate([polygons, polygons + count]).tolist(), strict=True):
        for vertex in triangle:
            around[vertex].add(polygon)
    meeting = {frozenset(group): vertex for vertex, group in enumerate(around)}
    images = [meeting.get(frozenset((p + count) % (2 * count) for p in group), -1) for group in around]
    mirror, own = np.array(images, dtype=np.int32), np.arange(vertices)
    # Vertices of equal polygons (valence two) are mistaken for each other; two separate copies keep none in place.
    if (mirror < 0).any() or (mirror[mirror] != own).any() or not (mirror == own).any():
        return None
    return mirror


def open_remeshed_faust(root: Path, registrations: Path | None = None) -> Dataset:
    """Open remeshed FAUST: off/tr_reg_*.off, corres/tr_reg_*.vts, corres/sampleID.vts; labels refer to tr_reg_000.

    Parameters
    ----------
    root : Path
        The folder, or one that contains it as `faust_r`.
    registrations : Path or None
        A FAUST folder; None searches next to `root` and in `ACNN_DATA`.

    Raises
    ------
    InputError
        Where a part is missing.
    """
    root = root if (root / "off").is_dir() else root / "faust_r"
    ids = root / "corres" / "sampleID.vts"
    shapes = sorted((root / "off").glob("*.off"))
    if not shapes or not ids.is_file():
        raise InputError(f"{root}: no remeshed FAUST: looked for {root / 'off' / '*.off'} and {ids}.")
    data = os.environ.get("ACNN_DATA")
    folders = [registrations] if registrations else [root.parent, root, *([Path(data)] if data else [])]
    folder = next((found for parent in folders if (found := find_registrations(parent))), None)
    if folder is None:
        looked = ", ".join(str(parent) for parent in folders)
        raise InputError(f"{root}: its labels refer to FAUST's tr_reg_000.ply, which is not in {looked}. {HOW_TO_GET}")
    reference = _reference_path(folder)
    samples = []
    for path in shapes:
        rows, mirrored = (root / "corres" / f"{path.stem}{end}" for end in (".vts", ".sym.vts"))
        reader = RemeshedRegistration(
            str(path), str(rows), str(mirrored) if mirrored.is_file() else "", str(ids), str(reference)
        )
        sample = Sample(path.stem, reader)
        number = sample.number
        known = number is not None and path.stem.startswith("tr_reg_")
        subject = number // 10 if known and number is not None else None
        split = None if subject is None else ("train" if subject < 8 else "test")
        samples.append(Sample(path.stem, reader, split, subject, number))  # type: ignore[arg-type]
    mesh = _reference(folder)
    return Dataset("faust_r", mesh, tuple(samples), mirror_of_halves(mesh.faces, len(mesh.vertices)))


def _reference_path(folder: Path) -> Path:
    first = folder / "tr_reg_000.ply"
    return first if first.is_file() else min(folder.glob("tr_reg_*.ply"))


def _reference(folder: Path) -> Mesh:
    mesh = load(_reference_path(folder), kind="mesh")
    assert isinstance(mesh, Mesh)
    return mesh
