"""Shapes from arrays, tensors and the meshes of other libraries, checked and repaired as `load` does for files.

No other library is imported: an object with the attributes that are read here is taken for one of theirs.

| library | points | faces | read as well |
|---|---|---|---|
| trimesh | `vertices` | `faces` (m, 3) | colours and texture of `visual`, `colors` of a cloud |
| pyvista | `points` | `faces`: corners of each polygon after their number | `point_data`: `RGB`, `RGBA`, `Normals` |
| PyTorch Geometric | `pos` | `face` (3, m) | |
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.shapes.formats.raw import FormatError, RawShape, colors_from
from acnn.shapes.mesh import Mesh, PointCloud


@check_arguments
def from_arrays(
    vertices: Any,
    faces: Any = None,
    *,
    colors: Any = None,
    normals: Any = None,
    uv: Any = None,
    uv_faces: Any = None,
    image: Any = None,
    repair: bool = True,
) -> Mesh | PointCloud:
    """Build a mesh from vertices and faces, or a point cloud from vertices alone, checked and repaired as by `load`.

    Arrays are NumPy arrays, lists or torch tensors, and are copied.

    Parameters
    ----------
    vertices : (n, 3) array, or a shape of trimesh, pyvista or PyTorch Geometric
        Coordinates; or such a shape alone, whose faces, colours and texture are used as well.
    faces : (m, k) int array or None
        0-based vertices of each triangle (k = 3) or polygon with k corners; None for a point cloud.
    colors : (n, 3) or (n, 4) array or None
        Colours of the vertices, in 0..255 or 0..1.
    normals : (n, 3) array or None
        Outward normals of a point cloud, of any length but 0.
    uv : (n, 2) array or None
        Texture coordinates of the vertices, v upwards; (j, 2) with `uv_faces`.
    uv_faces : (m, k) int array or None
        Row of `uv` for each corner, so that seams need no duplicate vertices.
    image : (height, width, 3 or 4) uint8 array or None
        Texture image.
    repair : bool
        False leaves vertices and faces as they are (polygons are still split into triangles) and lists in the findings
        what repair would do.

    Returns
    -------
    Mesh or PointCloud
        Its `source` maps its vertices to the rows of `vertices` and back (`source.to_file`, `source.from_file`), and
        lists every finding.

    Raises
    ------
    TypeError
        Where an argument is of another type.
    InputError
        Where the arrays do not fit together or no shape can be built, with what is wrong and where.

    Examples
    --------
    >>> mesh = from_arrays([[0, 0, 0], [1, 0, 0], [0, 1, 0], [9, 9, 9]], [[0, 1, 2]])
    >>> mesh
    Mesh(3 vertices, 1 faces)
    >>> mesh.source.from_file.tolist()
    [0, 1, 2, -1]
    """
    given = {"colors": colors, "normals": normals, "uv": uv, "uv_faces": uv_faces, "image": image}
    if (other := library_shape(vertices)) is not None:
        extra = [name for name, value in (("faces", faces), *given.items()) if value is not None]
        if extra:
            raise TypeError(f"from_arrays: pass a {type(vertices).__name__} alone, without {', '.join(extra)}")
        vertices, faces, given = other.vertices, other.faces, given | other.attributes
    raw = RawShape(_float64_table("vertices", vertices, (3,)), origin="array")
    n = len(raw.vertices)
    if faces is not None:
        if other is not None and isinstance(faces, list):  # polygons of different sizes
            raw.corners, raw.sizes = np.concatenate(faces).astype(np.int64), np.array([len(face) for face in faces])
        else:
            corners = _indices("faces", faces)
            raw.corners, raw.sizes = corners.reshape(-1), np.full(len(corners), corners.shape[1], np.int64)
            _texture(raw, corners.shape, given["uv"], given["uv_faces"], given["image"])
    elif unused := [name for name in ("uv", "uv_faces", "image") if given[name] is not None]:
        raise InputError(f"arrays: {', '.join(unused)} without faces: a point cloud has no texture.")
    if given["normals"] is not None:
        if faces is not None:
            raise InputError("arrays: normals are for point clouds; those of a mesh are computed from its faces.")
        raw.normals = _float64_table("normals", given["normals"], (3,), n)
    if given["colors"] is not None:
        raw.colors = colors_from(_real_table("colors", given["colors"], (3, 4), n))
    try:
        from acnn.shapes.check import build_shape

        return build_shape(raw, "", None, repair)
    except FormatError as error:
        raise InputError(f"arrays: {str(error).rstrip('.')}.") from error


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


def _array(name: str, value: Any) -> NDArray[Any]:
    """A copy as an array, whatever its shape and type of numbers."""
    if _is_tensor(value):
        tensor = value.detach().cpu()
        # NumPy lacks some floating-point types of torch.
        return (tensor.double() if tensor.is_floating_point() else tensor).numpy().copy()
    if not isinstance(value, np.ndarray | list | tuple):
        given = "a shape already" if isinstance(value, Mesh | PointCloud) else type(value).__name__
        remedy = "; acnn.load reads files" if isinstance(value, str) or hasattr(value, "__fspath__") else ""
        raise TypeError(
            f"from_arrays: {name} must be an array, a list, a torch tensor or a shape of trimesh, pyvista or PyTorch "
            f"Geometric, not {given}{remedy}"
        )
    try:
        return np.array(value)
    except ValueError as error:
        raise InputError(f"arrays: the rows of {name} are not all of the same length.") from error


def _real_table(name: str, value: Any, widths: tuple[int, ...], rows: int | None = None) -> NDArray[Any]:
    """A copy as (rows, one of the widths) real numbers."""
    array = _array(name, value)
    if array.ndim != 2 or array.shape[1] not in widths or (rows is not None and len(array) != rows):
        needed = " or ".join(f"({'n' if rows is None else rows}, {width})" for width in widths)
        hint = " Transpose it." if array.ndim == 2 and array.shape[0] in widths and rows is None else ""
        raise InputError(f"arrays: the shape of {name} is {array.shape}, but {needed} is needed.{hint}")
    if array.dtype.kind not in "fiu":
        raise InputError(f"arrays: {name} must hold real numbers, not {array.dtype}.")
    return array


def _float64_table(name: str, value: Any, widths: tuple[int, ...], rows: int | None = None) -> NDArray[np.float64]:
    return np.ascontiguousarray(_real_table(name, value, widths, rows), np.float64)


def _indices(name: str, value: Any, shape: tuple[int, ...] | None = None) -> NDArray[np.int64]:
    """(m, k) integers with k at least 3, or of a given shape."""
    array = _array(name, value)
    if shape is not None and array.shape != shape:
        raise InputError(f"arrays: the shape of {name} is {array.shape}, but {shape} is needed, that of faces.")
    if array.size == 0:
        raise InputError(f"arrays: {name} is empty. Leave it out to make a point cloud.")
    if array.ndim != 2 or array.shape[1] < 3:
        raise InputError(f"arrays: the shape of {name} is {array.shape}, but (m, 3) is needed.")
    if array.dtype.kind not in "iu":
        raise InputError(f"arrays: {name} must hold integers, not {array.dtype}.")
    largest = np.iinfo(np.int64).max
    return np.minimum(array, largest if array.dtype == np.uint64 else array).astype(np.int64)


def _texture(raw: RawShape, shape: tuple[int, ...], uv: Any, uv_faces: Any, image: Any) -> None:
    """Set the texture coordinates and the image of a mesh with faces of the given shape."""
    if uv is None:
        if uv_faces is not None or image is not None:
            raise InputError("arrays: uv_faces and image need texture coordinates: give uv.")
        return
    if uv_faces is None:
        raw.uv, raw.uv_corners = _float64_table("uv", uv, (2,), len(raw.vertices)), raw.corners
    else:
        raw.uv, raw.uv_corners = _float64_table("uv", uv, (2,)), _indices("uv_faces", uv_faces, shape).reshape(-1)
        outside = np.flatnonzero((raw.uv_corners < 0) | (raw.uv_corners >= len(raw.uv)))
        if len(outside):
            face = int(outside[0]) // shape[1]
            raise InputError(
                f"arrays: face {face} uses row {int(raw.uv_corners[outside[0]])} of uv, which has {len(raw.uv)} rows."
            )
    if image is not None:
        pixels = _array("image", image)
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or pixels.size == 0:
            raise InputError(
                f"arrays: image holds {pixels.dtype} of shape {pixels.shape}, but (height, width, 3 or 4) uint8 is "
                "needed."
            )
        raw.image = pixels


def _is_tensor(value: Any) -> bool:
    """Whether a value is a torch tensor; torch is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


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
