"""Folders of shapes, with one of four kinds of ground truth.

- one connectivity: vertex i is the same point on every shape; no further file is needed
- NAME.labels.txt next to NAME.ply: for every vertex a vertex of reference.ply, 0-based, -1 unknown
- NAME.truth.txt: for every vertex a point on the reference, `face w0 w1 w2`, 0-based (as `acnn data humans --remesh`)
- NAME.vts, or in `corres/` with the shapes in `off/`: row k of one shape corresponds to row k of another, 1-based

`reference.EXT` is the reference, or else the first shape; `mirror.txt` may give its mirror; `classes.txt` the classes
of its vertices, or `NAME.classes.txt` those of each shape (`acnn.datasets.labels`); `dataset.json` may list the shapes
with their split and subject, as written by `acnn data humans`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acnn.datasets.dataset import (
    Dataset,
    Example,
    Sample,
    Split,
    UnrelatedError,
    labels_as_loaded,
    truth_as_loaded,
    vertex_difference,
)
from acnn.datasets.labels import folder_classes, pair_labels, read_labels, read_truth, read_vts
from acnn.errors import InputError
from acnn.input_files import read_json
from acnn.shapes.load import SUFFIXES, load
from acnn.shapes.mesh import Mesh

# Not .txt and .npy, which hold labels and descriptors here.
SHAPES = (".ply", ".off", ".obj", ".stl", ".gltf", ".glb", ".xyz", ".pts")


@dataclass(frozen=True)
class FolderShape:
    """Reads one shape of a folder with its labels.

    Attributes
    ----------
    path : str
        The shape.
    reference : str
        The reference.
    same : bool
        True where vertex i of the shape is vertex i of the reference, so that no file of labels is needed.
    """

    path: str
    reference: str
    same: bool

    def __call__(self) -> Example:
        """The shape with its labels, from the first file that exists."""
        shape, reference = load(self.path), _load_reference(Path(self.reference))
        assert shape.source is not None
        assert reference.source is not None
        count, classes = len(shape.source.from_file), len(reference.source.from_file)
        truth_file, labels_file, rows_file = label_paths(Path(self.path))
        if truth_file.is_file():
            unrepaired = load(self.reference, kind="mesh", repair=False)
            assert isinstance(unrepaired, Mesh)
            in_file = read_truth(truth_file, count, len(unrepaired.faces))
            truth = truth_as_loaded(in_file, unrepaired.faces, shape, reference)
            return Example(shape, truth.nearest_vertex(reference.vertices, reference.faces), truth=truth)
        if labels_file.is_file():
            return Example(shape, labels_as_loaded(read_labels(labels_file, count, classes), shape, reference))
        if rows_file.is_file():
            other = label_paths(Path(self.reference))[2]
            listed, there = read_vts(rows_file, count), read_vts(other, classes)
            if len(listed) != len(there):
                raise InputError(f"{rows_file}: has {len(listed)} rows, but {other} has {len(there)}: rows correspond.")
            pairs, labels = pair_labels(listed, there, shape, reference)
            return Example(shape, labels, pairs=pairs)
        if not self.same:
            looked = ", ".join(str(path) for path in (labels_file, truth_file, rows_file))
            raise UnrelatedError(f"{self.path}: its correspondence is not known: looked for {looked}.")
        if different := vertex_difference(shape, reference):
            raise UnrelatedError(
                f"{self.path}: has {different}, so its vertices are not those of {Path(self.reference).name}. Say what "
                f"corresponds: {labels_file.name} with one line for each vertex (vertex of the reference from 0, -1 "
                "unknown) and reference.EXT, or .vts files."
            )
        return Example(shape, labels_as_loaded(np.arange(count), shape, reference))


@dataclass(frozen=True)
class UnlabelledShape:
    """Reads one shape of a folder, and nothing beside it.

    Attributes
    ----------
    path : str
        The shape.
    """

    path: str

    def __call__(self) -> Example:
        """The shape; no label is known."""
        shape = load(self.path)
        return Example(shape, np.full(len(shape.vertices), -1, np.int32))


def unlabelled_samples(root: Path) -> list[Sample]:
    """List the shapes of a folder (or of `off/` in it), without reading any label.

    Parameters
    ----------
    root : Path
        The folder; `dataset.json` may name shapes for testing. `reference.EXT` is not one of them.

    Raises
    ------
    InputError
        Where it is no folder, or contains no shapes.
    """
    if not root.is_dir():
        raise InputError(f"{root}: there is no such folder. Give a folder of shapes.")
    listing = root / "dataset.json"
    splits = {e["name"]: e.get("split") for e in _entries(listing, read_json(listing))} if listing.is_file() else {}
    folder = root / "off" if not shapes_in(root) and (root / "off").is_dir() else root
    paths = [path for path in shapes_in(folder) if path.stem != "reference"]
    if not paths:
        raise InputError(f"{root}: holds no shapes: looked for files ending in {' '.join(SHAPES)}.")
    samples = []
    for path in paths:
        split: Split | None = splits[path.stem] if splits.get(path.stem) in ("train", "test") else None
        samples.append(Sample(path.stem, UnlabelledShape(str(path)), split))
    return samples


def open_folder(root: Path) -> Dataset:
    """Open a folder of shapes as a dataset; the module docstring describes its files.

    Parameters
    ----------
    root : Path
        The folder.

    Returns
    -------
    Dataset
        Shapes are read when they are needed.

    Raises
    ------
    InputError
        Where it contains no shapes, or has labels but no reference.
    """
    listing = root / "dataset.json"
    if listing.is_file():
        return _open_listed(root, listing)
    folder = root / "off" if not shapes_in(root) and (root / "off").is_dir() else root
    shapes = shapes_in(folder)
    if not shapes:
        raise InputError(
            f"{root}: holds no shapes: looked for files ending in {' '.join(SHAPES)} and for dataset.json."
        )
    reference = next((path for path in shapes if path.stem == "reference"), None)
    members = [path for path in shapes if path.stem != "reference"] or shapes
    labelled = [path for path in members if any(file.is_file() for file in label_paths(path)[:2])]
    listed = [path for path in members if label_paths(path)[2].is_file()]
    if reference is None and labelled:
        raise InputError(
            f"{root}: {labelled[0].stem} has labels, but there is no reference for them: looked for reference.EXT "
            f"with EXT one of {' '.join(SHAPES)}."
        )
    if reference is None:
        reference = (listed or members)[0]
    if listed and not labelled and not label_paths(reference)[2].is_file():
        raise InputError(
            f"{root}: {listed[0].stem} has a .vts file, but the reference {reference.name} has none: looked for "
            f"{label_paths(reference)[2]}."
        )
    # Where some shapes have labels, one without is incomplete: its vertices are not assumed to be the reference's.
    same = not labelled and not listed
    samples = tuple(Sample(path.stem, FolderShape(str(path), str(reference), same)) for path in members)
    mesh = _load_reference(reference)
    return Dataset(
        root.name or str(root), mesh, samples, _mirror(root, mesh), classes=folder_classes(root, members, mesh)
    )


def label_paths(shape: Path) -> tuple[Path, Path, Path]:
    """Paths of the ground truth, labels and rows of a shape's file: NAME.truth.txt, NAME.labels.txt, NAME.vts."""
    rows = shape.with_name(f"{shape.stem}.vts")
    if shape.parent.name == "off" and not rows.is_file():
        rows = shape.parent.parent / "corres" / rows.name
    return shape.with_name(f"{shape.stem}.truth.txt"), shape.with_name(f"{shape.stem}.labels.txt"), rows


def listed_names(root: Path) -> list[str]:
    """Names of the shapes that `dataset.json` lists; empty where there is none.

    Parameters
    ----------
    root : Path
        The folder.

    Returns
    -------
    list[str]

    Raises
    ------
    InputError
        Where the file is damaged.
    """
    listing = root / "dataset.json"
    return [str(entry["name"]) for entry in _entries(listing, read_json(listing))] if listing.is_file() else []


def shapes_in(root: Path) -> list[Path]:
    """Paths of the shapes in a folder, in the order of their names, numbers by value."""
    found = [p for p in root.iterdir() if p.suffix.lower() in SHAPES and p.is_file() and not p.name.startswith(".")]
    return sorted(found, key=lambda path: [int(x) if x.isdecimal() else x for x in re.split(r"(\d+)", path.name)])


def shape_files(folder: Path) -> list[Path]:
    """Paths of all shapes in a folder, in the order of their names.

    Text and NPY files hold labels and weights as often as points: they are taken where there is nothing else.
    """
    points = (p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and not p.name.startswith("."))
    return shapes_in(folder) or sorted(path for path in points if path.is_file())


def _open_listed(root: Path, listing: Path) -> Dataset:
    about = read_json(listing)
    entries = _entries(listing, about)
    names = [str(entry["name"]) for entry in entries]
    reference = root / Path(str(about.get("reference", "reference.ply"))).name
    files = {path.stem: path for path in shapes_in(root)}
    samples = []
    for number, (name, entry) in enumerate(zip(names, entries, strict=True)):
        split: Split | None = entry.get("split") if entry.get("split") in ("train", "test") else None
        subject = entry.get("subject")
        # A missing file is reported when it is read, so that the others can be used.
        path = files.get(name, root / f"{Path(name).name}.ply")
        samples.append(Sample(name, FolderShape(str(path), str(reference), True), split, subject, number))
    mesh = _load_reference(reference)
    classes = folder_classes(root, list(files.values()), mesh)
    return Dataset(root.name or str(root), mesh, tuple(samples), _mirror(root, mesh), classes=classes)


def _entries(listing: Path, about: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        return [{**entry, "name": str(entry["name"])} for entry in about["shapes"]]
    except (KeyError, TypeError) as error:
        raise InputError(f"{listing}: does not list shapes as 'acnn data humans' writes them ({error!r}).") from error


def _load_reference(path: Path) -> Mesh:
    mesh = load(path)
    if not isinstance(mesh, Mesh):
        raise InputError(f"{path}: the reference must be a mesh, and this is a cloud. Name a mesh reference.ply.")
    return mesh


def _mirror(root: Path, reference: Mesh) -> np.ndarray | None:
    path = root / "mirror.txt"
    if not path.is_file():
        return None
    assert reference.source is not None
    count = len(reference.source.from_file)
    return labels_as_loaded(read_labels(path, count, count), reference, reference)
