"""Writing GLB (binary glTF 2.0)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.formats.files import encode_png
from acnn.shapes.shape import Mesh

ARRAY, INDEX = 34962, 34963
FLOAT, UBYTE, UINT = 5126, 5121, 5125


def write_glb(mesh: Mesh) -> bytes:
    """The bytes of a GLB file: one mesh, float32, colours as normalised bytes, the picture as embedded PNG.

    glTF has one texture coordinate per vertex, so vertices on seams are written several times; reading joins them.
    """
    vertex, faces, uv = _split_at_seams(mesh)
    glb = _Glb()
    position = mesh.vertices[vertex].astype("<f4")
    attributes = {"POSITION": glb.array(position, FLOAT, "VEC3", ARRAY)}
    glb.accessors[0].update(min=position.min(axis=0).tolist(), max=position.max(axis=0).tolist())
    material: dict[str, Any] = {"pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": 1.0}}
    if uv is not None:
        attributes["TEXCOORD_0"] = glb.array(uv.astype("<f4"), FLOAT, "VEC2", ARRAY)
    if mesh.colors is not None:
        attributes["COLOR_0"] = glb.array(mesh.colors[vertex], UBYTE, "VEC4", ARRAY)
        glb.accessors[-1]["normalized"] = True
        if (mesh.colors[:, 3] < 255).any():
            material["alphaMode"] = "BLEND"
    indices = glb.array(faces.astype("<u4").reshape(-1, 1), UINT, "SCALAR", INDEX)
    document: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "acnn"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": attributes, "indices": indices, "material": 0}]}],
        "materials": [material],
    }
    if mesh.texture is not None and mesh.texture.image is not None:
        view = glb.view(encode_png(mesh.texture.image), None)
        document["images"] = [{"bufferView": view, "mimeType": "image/png"}]
        document["textures"] = [{"source": 0}]
        material["pbrMetallicRoughness"]["baseColorTexture"] = {"index": 0}
    return glb.pack(document)


class _Glb:
    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.length = 0
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def view(self, data: bytes, target: int | None) -> int:
        view: dict[str, Any] = {"buffer": 0, "byteOffset": self.length, "byteLength": len(data)}
        if target is not None:
            view["target"] = target
        self.views.append(view)
        padded = data + b"\0" * (-len(data) % 4)
        self.parts.append(padded)
        self.length += len(padded)
        return len(self.views) - 1

    def array(self, values: NDArray[np.generic], component: int, kind: str, target: int) -> int:
        view = self.view(np.ascontiguousarray(values).tobytes(), target)
        self.accessors.append({"bufferView": view, "componentType": component, "count": len(values), "type": kind})
        return len(self.accessors) - 1

    def pack(self, document: dict[str, Any]) -> bytes:
        document |= {"accessors": self.accessors, "bufferViews": self.views, "buffers": [{"byteLength": self.length}]}
        text = json.dumps(document, separators=(",", ":")).encode("utf-8")
        text += b" " * (-len(text) % 4)
        binary = b"".join(self.parts)
        chunks = (
            len(text).to_bytes(4, "little") + b"JSON" + text + len(binary).to_bytes(4, "little") + b"BIN\0" + binary
        )
        return b"glTF" + (2).to_bytes(4, "little") + (12 + len(chunks)).to_bytes(4, "little") + chunks


def _split_at_seams(mesh: Mesh) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64] | None]:
    """Vertices to write (each a vertex of the mesh), faces over them, and their texture coordinates, v downwards."""
    n = len(mesh.vertices)
    if mesh.texture is None:
        return np.arange(n), mesh.faces.astype(np.int64), None
    uv, row = np.unique(mesh.texture.uv, axis=0, return_inverse=True)
    rows = row.reshape(-1)[mesh.texture.uv_faces].reshape(-1)
    key = mesh.faces.astype(np.int64).reshape(-1) * len(uv) + rows
    pairs, corner = np.unique(key, return_inverse=True)
    vertex, coordinates = pairs // len(uv), uv[pairs % len(uv)]
    return vertex, corner.reshape(-1, 3), np.column_stack([coordinates[:, 0], 1.0 - coordinates[:, 1]])
