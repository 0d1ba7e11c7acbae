"""Writing PLY, binary little-endian."""

from __future__ import annotations

import numpy as np

from acnn.shapes.shape import Mesh, PointCloud


def write_ply(shape: Mesh | PointCloud, picture: str | None = None) -> bytes:
    """The bytes of a PLY file: float64 coordinates, normals, RGBA colours, faces and a texture coordinate per corner.

    - picture: the name of the texture's picture beside the file
    """
    header = ["ply", "format binary_little_endian 1.0"]
    if picture:
        header.append(f"comment TextureFile {picture}")
    vertex = [("position", "<f8", (3,))]
    header += [f"element vertex {len(shape.vertices)}", *(f"property double {axis}" for axis in "xyz")]
    normals = shape.normals if isinstance(shape, PointCloud) else None
    if normals is not None:
        vertex.append(("normals", "<f8", (3,)))
        header += [f"property double {axis}" for axis in ("nx", "ny", "nz")]
    if shape.colors is not None:
        vertex.append(("colors", "u1", (4,)))
        header += [f"property uchar {channel}" for channel in ("red", "green", "blue", "alpha")]
    rows = np.zeros(len(shape.vertices), vertex)
    rows["position"] = shape.vertices
    if normals is not None:
        rows["normals"] = normals
    if shape.colors is not None:
        rows["colors"] = shape.colors
    body = [rows.tobytes()]
    if isinstance(shape, Mesh):
        face: list[tuple[str, str] | tuple[str, str, tuple[int]]] = [("n", "u1"), ("faces", "<i4", (3,))]
        header += [f"element face {len(shape.faces)}", "property list uchar int vertex_indices"]
        if shape.texture is not None:
            face += [("k", "u1"), ("uv", "<f8", (6,))]
            header.append("property list uchar double texcoord")
        table = np.zeros(len(shape.faces), face)
        table["n"], table["faces"] = 3, shape.faces
        if shape.texture is not None:
            table["k"], table["uv"] = 6, shape.texture.uv[shape.texture.uv_faces].reshape(-1, 6)
        body.append(table.tobytes())
    return "\n".join([*header, "end_header\n"]).encode("utf-8") + b"".join(body)
