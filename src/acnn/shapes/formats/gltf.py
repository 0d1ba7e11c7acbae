"""glTF 2.0 and GLB: reading scenes, and writing GLB.

The format is read here because trimesh visits nodes in reverse, fills sparse accessors with zeros, drops texture
coordinates without a material and silently skips what it does not know.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.formats.gltf_buffers import COMPONENTS, Buffers, resolve, split_chunks, validate_document
from acnn.shapes.formats.gltf_skin import VertexBlock, inverse_bind_matrices, scene_skin, skin_nodes
from acnn.shapes.formats.raw import FormatError, RawShape, colors_from, decode_image, encode_png
from acnn.shapes.mesh import Mesh
from acnn.shapes.skin import Skin, strongest

COMPRESSED = ("KHR_draco_mesh_compression", "EXT_meshopt_compression")

MAX_VERTICES = 20_000_000

"""Limit on the vertices of a scene, which may place one mesh many times."""

ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER = 34962, 34963

FLOAT, UNSIGNED_BYTE, UNSIGNED_SHORT, UNSIGNED_INT = 5126, 5121, 5123, 5125

"""Constants of the glTF 2.0 specification."""


def read_gltf(data: bytes, path: Path) -> RawShape:
    """Read all triangles and points of the default scene, node after node, each with its node's transform.

    Vertices are numbered in that order; primitives of one node that share their arrays share their vertices. Buffers
    and images are read from the file itself and from its own folder only.
    """
    return _scene(data, path).shape()


def read_gltf_skin(data: bytes, path: Path) -> Skin:
    """Read the skin of the default scene, with weights for the vertices that `read_gltf` returns."""
    scene = _scene(data, path)
    return scene_skin(validate_document(scene.document, skins=True), scene.arrays, scene.blocks)


def write_glb(mesh: Mesh, skin: Skin | None = None, normals: NDArray[np.floating] | None = None) -> bytes:
    """Bytes of a GLB file: one mesh, float32, colours as normalised bytes, the texture image as embedded PNG.

    glTF has one texture coordinate per vertex, so vertices on seams are written several times; loading merges them. Of
    a skin, the four strongest joints of each vertex are written, and the joints in the pose of the skin. Without
    `normals` (n, 3) of unit length, viewers shade every face as flat.
    """
    vertex, faces, uv = _split_at_seams(mesh)
    glb = _Glb()
    position = mesh.vertices[vertex].astype("<f4")
    attributes = {"POSITION": glb.array(position, FLOAT, "VEC3", ARRAY_BUFFER)}
    glb.accessors[0].update(min=position.min(axis=0).tolist(), max=position.max(axis=0).tolist())
    material: dict[str, Any] = {"pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": 1.0}}
    if normals is not None:
        attributes["NORMAL"] = glb.array(normals[vertex].astype("<f4"), FLOAT, "VEC3", ARRAY_BUFFER)
    if uv is not None:
        attributes["TEXCOORD_0"] = glb.array(uv.astype("<f4"), FLOAT, "VEC2", ARRAY_BUFFER)
    if mesh.colors is not None:
        attributes["COLOR_0"] = glb.array(mesh.colors[vertex], UNSIGNED_BYTE, "VEC4", ARRAY_BUFFER)
        glb.accessors[-1]["normalized"] = True
        if (mesh.colors[:, 3] < 255).any():
            material["alphaMode"] = "BLEND"
    if skin is not None:
        joints, weights = (rows[vertex] for rows in strongest(skin.weights))
        kind = UNSIGNED_BYTE if len(skin.names) <= 256 else UNSIGNED_SHORT
        attributes["JOINTS_0"] = glb.array(joints.astype(COMPONENTS[kind]), kind, "VEC4", ARRAY_BUFFER)
        attributes["WEIGHTS_0"] = glb.array(weights.astype("<f4"), FLOAT, "VEC4", ARRAY_BUFFER)
    indices = glb.array(faces.astype("<u4").reshape(-1, 1), UNSIGNED_INT, "SCALAR", ELEMENT_ARRAY_BUFFER)
    document: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "acnn"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": attributes, "indices": indices, "material": 0}]}],
        "materials": [material],
    }
    if skin is not None:
        bones = skin_nodes(skin, 1)
        matrices = glb.array(inverse_bind_matrices(skin), FLOAT, "MAT4", None)
        document["nodes"] = [{"mesh": 0, "skin": 0}, *bones]
        document["skins"] = [{"joints": list(range(1, len(bones) + 1)), "inverseBindMatrices": matrices}]
        document["scenes"][0]["nodes"] = [0, *(1 + np.flatnonzero(skin.parents < 0)).tolist()]
    if mesh.texture is not None and mesh.texture.image is not None:
        view = glb.view(encode_png(mesh.texture.image), None)
        document["images"] = [{"bufferView": view, "mimeType": "image/png"}]
        document["textures"] = [{"source": 0}]
        material["pbrMetallicRoughness"]["baseColorTexture"] = {"index": 0}
    return glb.pack(document)


def _scene(data: bytes, path: Path) -> _Scene:
    """All primitives of the default scene."""
    document, chunk = split_chunks(data)
    document = validate_document(document)
    if not document["asset"]["version"].startswith("2"):
        raise FormatError("it is not glTF 2.0")
    for name in COMPRESSED:
        if name in document.get("extensionsRequired", []):
            raise FormatError(f"it is compressed with {name}, which cannot be read; export it without compression")
    scene = _Scene(document, chunk, path)
    for node, mesh, matrix in scene.mesh_instances():
        for number, primitive in enumerate(document["meshes"][mesh]["primitives"]):
            scene.add(node, matrix, primitive, f"primitive {number} of mesh {mesh}")
    return scene


class _Scene:
    """Collects the primitives of a scene into one shape."""

    def __init__(self, document: dict[str, Any], chunk: bytes, path: Path) -> None:
        self.document, self.path = document, path
        self.result = RawShape(np.zeros((0, 3)))
        self.arrays = Buffers(document, chunk, path)
        self.base: dict[tuple[Any, ...], int] = {}
        self.blocks: list[VertexBlock] = []
        self.count = 0
        self.vertices: list[NDArray[np.float64]] = []
        self.uvs: list[NDArray[np.float64] | None] = []
        self.colors: list[NDArray[np.uint8] | None] = []
        self.faces: list[NDArray[np.int64]] = []
        self.images: list[int] = []
        self.ignored: Counter[str] = Counter()

    def mesh_instances(self) -> list[tuple[int, int, NDArray[np.float64]]]:
        """(node, mesh, 4 x 4 transform) in the order of the scene, each node visited once."""
        nodes = self.document.get("nodes", [])
        if not nodes:
            return [(-1, mesh, np.eye(4)) for mesh in range(len(self.document.get("meshes", [])))]
        scenes = self.document.get("scenes", [])
        if scenes:
            roots = list(scenes[self.document.get("scene", 0)].get("nodes", []))
        else:
            children = {child for node in nodes for child in node.get("children", [])}
            roots = [i for i in range(len(nodes)) if i not in children]
        stack = [(root, np.eye(4)) for root in reversed(roots)]
        seen: set[int] = set()
        instances = []
        while stack:
            index, parent = stack.pop()
            if index in seen:
                raise FormatError(f"node {index} is used twice: the scene is damaged")
            seen.add(index)
            node = nodes[index]
            matrix = parent @ _transform(node)
            if "mesh" in node:
                skinned = "skin" in node
                if skinned:
                    self.ignored["skins"] += 1
                instances.append((index, node["mesh"], np.eye(4) if skinned else matrix))
            stack.extend((child, matrix) for child in reversed(node.get("children", [])))
        return instances

    def add(self, node: int, matrix: NDArray[np.float64], primitive: dict[str, Any], where: str) -> None:
        """Add one primitive, called `where` in messages."""
        for name in COMPRESSED:
            if name in primitive.get("extensions", {}):
                raise FormatError(f"{where} is compressed with {name}; export it without compression")
        mode = primitive.get("mode", 4)
        if mode in (1, 2, 3) or mode not in (0, 4, 5, 6):
            self.ignored["line primitives"] += 1
            return
        if primitive.get("targets"):
            self.ignored["morph targets"] += len(primitive["targets"])
        attributes = primitive["attributes"]
        if "POSITION" not in attributes:
            raise FormatError(f"{where} has no positions")
        uv_name = self._note_image(primitive)
        key = (node, attributes["POSITION"], attributes.get(uv_name), attributes.get("COLOR_0"))
        if key not in self.base:
            position = self.arrays.floats(attributes["POSITION"])
            if position.shape[1] != 3:
                raise FormatError(f"the positions of {where} are not triples")
            self.base[key] = self.count
            self.blocks.append(VertexBlock(node, attributes, len(position)))
            self.count += len(position)
            if self.count > MAX_VERTICES:
                raise FormatError(f"its scene has more than {MAX_VERTICES} vertices")
            with np.errstate(over="ignore", invalid="ignore"):
                moved = position if (matrix == np.eye(4)).all() else position @ matrix[:3, :3].T + matrix[:3, 3]
            self.vertices.append(moved)
            self.uvs.append(self.arrays.attribute(attributes.get(uv_name), len(position), (2,)))
            color = self.arrays.attribute(attributes.get("COLOR_0"), len(position), (3, 4))
            self.colors.append(None if color is None else colors_from(np.clip(color, 0.0, 1.0)))
        base = self.base[key]
        if mode == 0:
            return
        if "indices" in primitive:
            index = self.arrays.accessor(primitive["indices"]).reshape(-1)
            if index.dtype.kind != "u":
                raise FormatError(f"the indices of {where} are not integers")
            corners = index.astype(np.int64)
        else:
            corners = np.arange(len(self.arrays.accessor(attributes["POSITION"])), dtype=np.int64)
        size = len(self.arrays.accessor(attributes["POSITION"]))
        if len(corners) and int(corners.max()) >= size:
            face = int(np.argmax(corners)) // 3
            raise FormatError(f"face {face} of {where} uses vertex {int(corners.max())}, but there are {size}")
        faces = _triangles(corners, mode, where)
        if sum(map(len, self.faces)) + len(faces) > 2 * MAX_VERTICES:
            raise FormatError(f"its scene has more than {2 * MAX_VERTICES} faces")
        # A mirroring transform flips the faces (glTF 2.0), so that their normals stay outwards.
        if np.linalg.det(matrix[:3, :3]) < 0:
            faces = faces[:, [0, 2, 1]]
        self.faces.append(faces + base)

    def shape(self) -> RawShape:
        """All primitives as one shape."""
        if not self.vertices:
            raise FormatError("its scene holds no triangles and no points")
        result = self.result
        result.vertices = np.concatenate(self.vertices)
        if self.faces:
            result.corners = np.concatenate(self.faces).reshape(-1)
            result.sizes = np.full(len(result.corners) // 3, 3, np.int64)
        if any(c is not None for c in self.colors):
            white = [np.full((len(v), 4), 255, np.uint8) for v in self.vertices]
            result.colors = np.concatenate([w if c is None else c for w, c in zip(white, self.colors, strict=True)])
        if len(result.sizes) and any(uv is not None for uv in self.uvs):
            none = [np.zeros((len(v), 2)) for v in self.vertices]
            result.uv = np.concatenate([z if uv is None else uv for z, uv in zip(none, self.uvs, strict=True)])
            result.uv[:, 1] = 1.0 - result.uv[:, 1]
            result.uv_corners = result.corners
            self._load_image()
        for what, count in self.ignored.items():
            name = what if count > 1 else what.removesuffix("s")
            hint = ", but 'acnn transfer --skin' transfers it" if what == "skins" else ""
            result.note(what.replace(" ", "-"), count, f"{count} {name}: not part of the shape{hint}")
        return result

    def _note_image(self, primitive: dict[str, Any]) -> str:
        """Record the image of a primitive's material; the name of the texture coordinates that it uses."""
        if "material" not in primitive:
            return "TEXCOORD_0"
        material = self.document["materials"][primitive["material"]]
        use = material.get("pbrMetallicRoughness", {}).get("baseColorTexture")
        if use is None:
            return "TEXCOORD_0"
        texture = self.document["textures"][use["index"]]
        source = texture.get("source", texture.get("extensions", {}).get("EXT_texture_webp", {}).get("source"))
        if source is not None:
            self.images.append(source)
        return f"TEXCOORD_{use.get('texCoord', 0)}"

    def _load_image(self) -> None:
        images = list(dict.fromkeys(self.images))
        if not images:
            return
        image = self.document["images"][images[0]]
        data: bytes | None = None
        if "bufferView" in image:
            data = self.arrays.view(image["bufferView"])[0]
        elif "uri" in image:
            data = resolve(image["uri"], self.path)
        self.result.image = decode_image(data) if data is not None else None
        if self.result.image is None:
            self.result.note(
                "texture-missing", 1, f"image {images[0]} is not in the file or its folder, or cannot be read"
            )
        if len(images) > 1:
            self.result.note("several-textures", len(images), f"{len(images)} texture images: only the first is kept")


def _transform(node: dict[str, Any]) -> NDArray[np.float64]:
    if "matrix" in node:
        return np.array(node["matrix"], np.float64).reshape(4, 4).T
    matrix = np.eye(4)
    if "rotation" in node:
        x, y, z, w = np.array(node["rotation"], np.float64).reshape(4)
        s = 2.0 / max(x * x + y * y + z * z + w * w, 1e-300)
        matrix[:3, :3] = [
            [1 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w)],
            [s * (x * y + z * w), 1 - s * (x * x + z * z), s * (y * z - x * w)],
            [s * (x * z - y * w), s * (y * z + x * w), 1 - s * (x * x + y * y)],
        ]
    if "scale" in node:
        matrix[:3, :3] *= np.array(node["scale"], np.float64).reshape(3)
    if "translation" in node:
        matrix[:3, 3] = np.array(node["translation"], np.float64).reshape(3)
    return matrix


def _triangles(index: NDArray[np.int64], mode: int, where: str) -> NDArray[np.int64]:
    if mode == 4:
        if len(index) % 3:
            raise FormatError(f"{where} has {len(index)} indices, which is not a multiple of three")
        return index.reshape(-1, 3)
    if len(index) < 3:
        return np.zeros((0, 3), np.int64)
    if mode == 6:
        return np.column_stack([np.full(len(index) - 2, index[0]), index[1:-1], index[2:]])
    strip = np.column_stack([index[:-2], index[1:-1], index[2:]])
    strip[1::2] = strip[1::2][:, [1, 0, 2]]
    # Strips are connected by degenerate triangles with a repeated vertex, which are not part of the surface.
    repeated = (strip[:, 0] == strip[:, 1]) | (strip[:, 1] == strip[:, 2]) | (strip[:, 0] == strip[:, 2])
    return strip[~repeated]


class _Glb:
    """Collects buffer views and accessors of a GLB file."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.length = 0
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def view(self, data: bytes, target: int | None) -> int:
        view: dict[str, Any] = {"buffer": 0, "byteOffset": self.length, "byteLength": len(data)}
        if target is not None:
            view["target"] = target
        self.views.append(view)
        padded = data + b"\0" * (-len(data) % 4)
        self.chunks.append(padded)
        self.length += len(padded)
        return len(self.views) - 1

    def array(self, values: NDArray[np.generic], component: int, kind: str, target: int | None) -> int:
        view = self.view(np.ascontiguousarray(values).tobytes(), target)
        self.accessors.append({"bufferView": view, "componentType": component, "count": len(values), "type": kind})
        return len(self.accessors) - 1

    def pack(self, document: dict[str, Any]) -> bytes:
        document |= {"accessors": self.accessors, "bufferViews": self.views, "buffers": [{"byteLength": self.length}]}
        text = json.dumps(document, separators=(",", ":")).encode("utf-8")
        text += b" " * (-len(text) % 4)
        binary = b"".join(self.chunks)
        chunks = (
            len(text).to_bytes(4, "little") + b"JSON" + text + len(binary).to_bytes(4, "little") + b"BIN\0" + binary
        )
        return b"glTF" + (2).to_bytes(4, "little") + (12 + len(chunks)).to_bytes(4, "little") + chunks


def _split_at_seams(mesh: Mesh) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64] | None]:
    """Vertices of the mesh to write, faces over these, and their texture coordinates, v downwards."""
    n = len(mesh.vertices)
    if mesh.texture is None:
        return np.arange(n), mesh.faces.astype(np.int64), None
    uv, row = np.unique(mesh.texture.uv, axis=0, return_inverse=True)
    rows = row.reshape(-1)[mesh.texture.uv_faces].reshape(-1)
    key = mesh.faces.astype(np.int64).reshape(-1) * len(uv) + rows
    pairs, corner = np.unique(key, return_inverse=True)
    vertex, coordinates = pairs // len(uv), uv[pairs % len(uv)]
    return vertex, corner.reshape(-1, 3), np.column_stack([coordinates[:, 0], 1.0 - coordinates[:, 1]])
