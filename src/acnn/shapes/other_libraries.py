"""Shapes of other libraries as arrays: trimesh, pyvista and PyTorch Geometric, recognised by their attributes.

None of these libraries is imported: an object with the attributes that are read here is taken for one of theirs.

| library | points | faces | read as well |
|---|---|---|---|
| trimesh | `vertices` | `faces` (m, 3) | colours and texture of `visual`, `colors` of a cloud |
| pyvista | `points` | `faces`: corners of each polygon after their number | `point_data`: `RGB`, `RGBA`, `Normals` |
| PyTorch Geometric | `pos` | `face` (3, m) | |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.shapes.mesh import Mesh, PointCloud


class LibraryShape(NamedTuple):
    """What a shape of another library holds, unchecked.

    Attributes
    ----------
    vertices : (n, 3) array
        Coordinates.
    faces : (m, k) array, a list of polygons, or None
        None for a point cloud.
    attributes : dict[str, array]
        Arguments of `from_arrays`: `colors`, `normals`, `uv`, `image`.
    """

    vertices: Any
    faces: Any
    attributes: dict[str, Any]


def library_shape(value: Any) -> LibraryShape | None:
    """The arrays of a shape of another library.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    LibraryShape or None
        None where it is not such a shape.
    """
    if type(value).__module__.split(".")[0] == "acnn" or isinstance(value, np.ndarray | list | tuple | str):
        return None
    if _has(value, "points") and hasattr(value, "faces"):
        return _pyvista(value)
    if _has(value, "pos") and hasattr(value, "face"):
        return LibraryShape(value.pos, None if value.face is None else value.face.T, {})
    if _has(value, "vertices") and (hasattr(value, "faces") or hasattr(value, "colors")):
        return _trimesh(value)
    return None


def converted_shape(value: Any) -> Mesh | PointCloud | None:
    """A shape of another library as one of ours, with the same vertices in the same order.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    Mesh or PointCloud or None
        Checked and repaired; None where it is not a shape of another library.

    Raises
    ------
    InputError
        Where it cannot be repaired, or only by changing its vertices, by whose numbers a caller reads the results.
    """
    if library_shape(value) is None:
        return None
    from acnn.shapes.arrays import from_arrays

    shape = from_arrays(value)
    assert shape.source is not None
    count = len(shape.source.from_file)
    if len(shape.vertices) != count or (shape.source.to_file != np.arange(count)).any():
        repairs = "; ".join(finding.text for finding in shape.source.findings if finding.repaired)
        raise InputError(
            f"this {type(value).__name__} has defects whose repair changes its vertices ({repairs}). Convert it with "
            "acnn.from_arrays: 'source.to_file' of the result has the original number of each vertex."
        )
    return shape


def _has(value: Any, name: str) -> bool:
    return getattr(value, name, None) is not None


def _pyvista(shape: Any) -> LibraryShape:
    """Points and polygons of a PolyData."""
    padded = np.asarray(shape.faces)
    data = getattr(shape, "point_data", {})
    colors = next((np.asarray(data[name]) for name in ("RGBA", "RGB") if name in data), None)
    attributes = {} if colors is None else {"colors": colors}
    vertices = np.asarray(shape.points)
    if not padded.size:
        normals = {"normals": np.asarray(data["Normals"])} if "Normals" in data else {}
        return LibraryShape(vertices, None, attributes | normals)
    return LibraryShape(vertices, padded if padded.ndim == 2 else _unpadded(padded), attributes)


def _unpadded(padded: NDArray[Any]) -> Any:
    """Faces of a list in which each polygon follows the number of its corners: an array where all have the same."""
    corners = int(padded[0])
    if len(padded) % (corners + 1) == 0 and (padded[:: corners + 1] == corners).all():
        return padded.reshape(-1, corners + 1)[:, 1:]
    polygons, at = [], 0
    while at < len(padded):
        polygons.append(padded[at + 1 : at + 1 + int(padded[at])])
        if int(padded[at]) < 3 or len(polygons[-1]) != padded[at]:
            raise InputError(f"arrays: polygon {len(polygons) - 1} of faces has {padded[at]} corners or is truncated.")
        at += 1 + int(padded[at])
    return polygons


def _trimesh(shape: Any) -> LibraryShape:
    """Vertices, faces, colours and texture of a mesh or cloud of trimesh."""
    vertices = np.asarray(shape.vertices)
    if not hasattr(shape, "faces"):
        colors = np.asarray(shape.colors)
        return LibraryShape(vertices, None, {"colors": colors} if len(colors) == len(vertices) > 0 else {})
    attributes: dict[str, Any] = {}
    visual = getattr(shape, "visual", None)
    kind = getattr(visual, "kind", None)
    if visual is not None and kind == "vertex":
        attributes["colors"] = np.asarray(visual.vertex_colors)
    elif visual is not None and kind == "texture" and visual.uv is not None:
        attributes["uv"] = np.asarray(visual.uv)
        image = getattr(visual.material, "image", None) or getattr(visual.material, "baseColorTexture", None)
        if image is not None:
            attributes["image"] = np.asarray(image.convert("RGBA" if "A" in image.getbands() else "RGB"))
    return LibraryShape(vertices, np.asarray(shape.faces), attributes)
