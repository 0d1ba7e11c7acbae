"""Fuzzing of every reader: damaged and hostile files end in a result or in an InputError, whatever is in them.

    python benchmarks/fuzz_readers.py --count 10000 --seed 0 [--only ply,run] [--guided SECONDS]

A case is one valid file of `targets`, damaged: bytes flipped, cut, repeated, or, knowing the format, a value of a JSON
document, a number of a text, an array of an archive replaced by something that no reader expects. A process of its own
reads them, each within 10 s and 2 GB. A case fails if it ends in any exception but InputError, prints, hangs, takes the
memory, opens a file outside its own folder, starts a process, opens a connection or unpickles anything.

--guided lets atheris, where it is installed, look for inputs that reach new code instead (one process, no limits on
files). The table counts outcomes by reader; the exit code is 1 where a case failed.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import os
import platform
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

SECONDS, GIGABYTES = 10, 2
SUFFIXES = (".ply", ".off", ".obj", ".stl", ".glb", ".gltf", ".xyz", ".npy", ".txt", "")
GOOD = ("read", "repaired", "error")
BAD = ("traceback", "printed", "forbidden", "hang", "memory", "crash")
WORDS = (
    b"-1",
    b"0",
    b"99999999",
    b"4294967295",
    b"9223372036854775807",
    b"1e400",
    b"nan",
    b"-inf",
    b"x",
    b"''",
    b"\xff",
)
PATHS = (b"../../../etc/passwd", b"/etc/passwd", b"file:///etc/passwd", b"data:,", b"C:\\x", b"a" * 5000, b"\x00")
VALUES = (None, True, -1, 10**9, 2**70, 1.5, float("nan"), "x", "\ud800", "../../../etc/passwd", [], [0], {}, {"a": 1})


@dataclass(frozen=True)
class Target:
    """A valid file, what lies beside it, and how it is read.

    Attributes
    ----------
    name : str
        Of the reader; the part before the first blank is its group.
    files : dict[str, bytes]
        By name, the folder that is read.
    victim : str
        The file that is damaged.
    read : callable
        Takes the path of the victim.
    renamed : bool
        Whether the victim may also get a wrong suffix.
    """

    name: str
    files: dict[str, bytes]
    victim: str
    read: Callable[[Path], object]
    renamed: bool = False


def targets(folder: Path) -> list[Target]:
    """All readers, with small valid files of theirs; `folder` is for writing them."""
    return [*shape_targets(folder / "shapes"), *array_targets(folder / "arrays"), *run_targets(folder / "run")]


def shape_targets(folder: Path) -> list[Target]:
    """Shapes in every format, and the material and images beside an OBJ."""
    folder.mkdir()
    originals = write_originals(folder)
    found = []
    for path in originals:
        beside = {p.name: p.read_bytes() for p in folder.iterdir() if p.stem == path.stem or p.name == "apart.bin"}
        found.append(Target(f"{path.suffix[1:]} {path.stem}", beside, path.name, load_and_check, renamed=True))
    textured = {p.name: p.read_bytes() for p in folder.iterdir() if p.stem == "textured"}
    beside = [name for name in textured if name.endswith((".mtl", ".png"))]
    if len(beside) < 2:
        raise RuntimeError("a textured OBJ has a material and an image beside it")
    found += [
        Target(f"obj {name}", textured, name, lambda path: load_and_check(path.with_name("textured.obj")))
        for name in beside
    ]
    return [
        *found,
        Target("gltf buffer", {**_files(folder, "apart.gltf", "apart.bin")}, "apart.bin", _load_gltf),
        Target("skin glb", {"skin.glb": skinned_glb()}, "skin.glb", _load_skin),
    ]


def _load_gltf(path: Path) -> object:
    return load_and_check(path.with_name("apart.gltf"))


def _load_skin(path: Path) -> object:
    from acnn.shapes import Mesh, load, load_skin

    mesh = load(path)
    if not isinstance(mesh, Mesh):
        return mesh
    skin = load_skin(path, mesh)
    assert skin.weights.shape == (len(mesh.vertices), len(skin.names)), "weights of other vertices"
    assert np.isfinite(skin.transforms).all(), "transforms are not finite"
    assert np.isfinite(skin.weights.data).all(), "weights are not finite"
    return skin


def _files(folder: Path, *names: str) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}


def array_targets(folder: Path) -> list[Target]:
    """Labels, values, landmarks, maps, ground truth, lists and tables that belong to a shape."""
    from acnn.correspondence.landmarks import read_landmarks
    from acnn.correspondence.map_files import fingerprint, read_map
    from acnn.datasets.labels import read_labels, read_truth, read_vts
    from acnn.datasets.pairs import read_pair_list
    from acnn.datasets.shrec16 import read_baryc
    from acnn.runs.transfer import read_values
    from acnn.shapes import Mesh, load, save
    from acnn.shapes.load import own_descriptors

    folder.mkdir()
    vertices, faces, _, _ = grid_on_a_tube(8, 6)
    save(Mesh(vertices, faces), folder / "shape.ply")
    shape = load(folder / "shape.ply")
    ply = (folder / "shape.ply").read_bytes()
    n, m = len(shape.vertices), len(shape.faces)
    rng = np.random.default_rng(1)
    rows, weights = np.arange(n), rng.dirichlet([1, 1, 1], n)
    form = "%d %.6f %.6f %.6f"
    a_map = {
        "a_to_b": rows,
        "a_to_b_faces": rng.integers(m, size=n),
        "a_to_b_weights": weights,
        "b_to_a": rows[::-1],
        "confidence": weights[:, 0],
        "a_fingerprint": fingerprint(shape),
        "b_fingerprint": fingerprint(shape),
    }
    marks = b"# paws\nleft 0 3\nright 5 7\n9 12\n"
    plain = {
        "values labels.npy": (npy(rows), lambda path: read_values(path, shape)),
        "values table.npy": (npy(rng.normal(size=(n, 2))), lambda path: read_values(path, shape)),
        "values words.npy": (npy(np.array([f"w{i}" for i in rows])), lambda path: read_values(path, shape)),
        "values table.txt": (text(weights, "%.5f"), lambda path: read_values(path, shape)),
        "map map.npz": (npz(a_map), lambda path: read_map(path, shape, shape)),
        "map map.txt": (text(rows), lambda path: read_map(path, shape, shape)),
        "map map.vts": (text(rows + 1), lambda path: read_map(path, shape, shape)),
        "labels labels.txt": (text(rows), lambda path: read_labels(path, n, n)),
        "labels rows.vts": (text(rows + 1), lambda path: read_vts(path, n)),
        "truth truth.txt": (text(np.c_[rows, weights], form), lambda path: read_truth(path, n, m)),
        "truth part.baryc_gt": (text(np.c_[rows + 1, weights], form), lambda path: read_baryc(path, n, m)),
        "landmarks marks.txt": (marks, lambda path: read_landmarks(path, shape, shape)),
        "pairs pairs.txt": (b"# pairs\na b\nc d\n", read_pair_list),
    }
    found = [Target(name, {name.split()[1]: data}, name.split()[1], read) for name, (data, read) in plain.items()]
    own = npy(rng.normal(size=(n, 4)).astype(np.float32))

    def descriptors(path: Path) -> object:
        return own_descriptors(load(path.with_suffix(".ply")))

    return [*found, Target("values shape.npy", {"shape.npy": own, "shape.ply": ply}, "shape.npy", descriptors)]


def run_targets(folder: Path) -> list[Target]:
    """Files of a run, and entries of the cache."""
    import torch

    from acnn.datasets.dataset import Dataset
    from acnn.methods.run import RunRecord, open_run, write_run
    from acnn.network import ShapeNetwork, save_model
    from acnn.patches import PatchSettings, build_patches
    from acnn.shapes import Mesh
    from acnn.training.cache_entries import read_descriptors, read_patches, write_descriptors, write_patches
    from acnn.training.checkpoint import Progress, read_checkpoint, write_checkpoint
    from acnn.training.config import RunConfig, read_config
    from acnn.training.log import read_log

    folder.mkdir()
    vertices, faces, _, _ = grid_on_a_tube(8, 6)
    mesh = Mesh(vertices, faces)
    n = len(vertices)
    config = RunConfig(patches=PatchSettings(angles=2, scales=(20.0, 40.0)))
    facts = {"data": "here", "train": ["a"], "validation": [], "unit": 0.5, "content": {"train": ["f0"]}, "step": 3}
    write_run(folder, Dataset("data", mesh, (), np.arange(n)[::-1].copy()), config, RunRecord(**facts))
    torch.manual_seed(0)
    model = ShapeNetwork("FC4+IC4+BN+FC8+Softmax", 3, n, 2, 2)
    save_model(model, folder / "model.safetensors", {"config": config.as_dict(), "data": "here"})
    run = _files(folder, "run.json", "config.toml", "model.safetensors", "reference.safetensors")
    write_patches(build_patches(mesh, config.patches), folder / "patches.safetensors")
    write_descriptors(folder / "descriptors.safetensors", np.ones((n, 3)))
    optimiser = torch.optim.AdamW(model.parameters())
    write_checkpoint(folder / "checkpoint.safetensors", model, optimiser, Progress(step=1), config.as_dict())
    log = b'{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 2.25, "validation": {"exact": 0.5}}\n'

    def opened(path: Path) -> object:
        run = open_run(path.parent)
        return run.matcher, run.reference, run.config

    def resumed(path: Path) -> object:
        return read_checkpoint(path, model, optimiser, config.as_dict())

    stored = {
        "run checkpoint.safetensors": resumed,
        "cache patches.safetensors": read_patches,
        "cache descriptors.safetensors": read_descriptors,
    }
    return [
        *(Target(f"run {name}", run, name, opened) for name in run if name != "config.toml"),
        Target("run config.toml", run, "config.toml", read_config),
        Target("run log.jsonl", {"log.jsonl": log}, "log.jsonl", lambda path: read_log(path, "step")),
        *(Target(name, _files(folder, name.split()[1]), name.split()[1], read) for name, read in stored.items()),
    ]


def write_originals(folder: Path) -> list[Path]:
    """Small valid files in every format, with colours and texture where the format has them."""
    from acnn.shapes import Mesh, PointCloud, Texture, save

    vertices, faces, uv, uv_faces = grid_on_a_tube(24, 16)
    rng = np.random.default_rng(7)
    colors = rng.integers(0, 256, (len(vertices), 4)).astype(np.uint8)
    image = rng.integers(0, 256, (8, 8, 3)).astype(np.uint8)
    mesh = Mesh(vertices, faces, colors, Texture(uv, uv_faces, image))
    plain = Mesh(vertices, faces, colors)
    normals = vertices / np.linalg.norm(vertices, axis=1, keepdims=True)
    cloud = PointCloud(vertices, normals, colors)
    names = []
    for shape, name in [(mesh, "textured.ply"), (plain, "plain.ply"), (mesh, "textured.obj"), (plain, "plain.off")]:
        save(shape, folder / name)
        names.append(name)
    for shape, name in [(plain, "plain.stl"), (mesh, "textured.glb"), (plain, "plain.glb"), (plain, "plain.obj")]:
        save(shape, folder / name)
        names.append(name)
    for name in ("cloud.ply", "cloud.xyz", "cloud.npy"):
        save(cloud, folder / name)
        names.append(name)
    (folder / "ascii.ply").write_bytes(other_ply(plain, ascii_text=True))
    (folder / "big.ply").write_bytes(other_ply(plain, ascii_text=False))
    (folder / "ascii.stl").write_bytes(ascii_stl(plain))
    (folder / "apart.gltf").write_bytes(gltf_from_glb((folder / "plain.glb").read_bytes(), folder / "apart.bin"))
    return [folder / name for name in [*names, "ascii.ply", "big.ply", "ascii.stl", "apart.gltf"]]


def grid_on_a_tube(around: int, along: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """An open tube with a texture seam: vertices, faces, texture coordinates, their faces."""
    i, j = np.meshgrid(np.arange(around), np.arange(along), indexing="ij")
    angle, height = 2 * np.pi * i / around, j / along
    vertices = np.column_stack([np.cos(angle).ravel(), np.sin(angle).ravel(), 3 * height.ravel()])
    a, b = np.meshgrid(np.arange(around), np.arange(along - 1), indexing="ij")
    a, b = a.ravel(), b.ravel()
    quads = [(a, b), (a + 1, b), (a + 1, b + 1), (a, b + 1)]
    at = [x % around * along + y for x, y in quads]
    uv_at = [x * along + y for x, y in quads]
    faces = np.concatenate(
        [np.column_stack([q[0], q[1], q[2]]) for q in [at]] + [np.column_stack([at[0], at[2], at[3]])]
    )
    uv_faces = np.concatenate([np.column_stack(uv_at[:3]), np.column_stack([uv_at[0], uv_at[2], uv_at[3]])])
    u, v = np.meshgrid(np.arange(around + 1) / around, np.arange(along) / along, indexing="ij")
    return vertices, faces.astype(np.int32), np.column_stack([u.ravel(), v.ravel()]), uv_faces.astype(np.int32)


def skinned_glb() -> bytes:
    """A tube with three joints, as GLB."""
    import scipy.sparse as sp

    from acnn.shapes import Mesh, Skin
    from acnn.shapes.formats.gltf import write_glb

    vertices, faces, _, _ = grid_on_a_tube(24, 16)
    height = vertices[:, 2] / 3
    weights = sp.csr_array(np.column_stack([1 - height, height * (1 - height), height**2]))
    transforms = np.tile(np.eye(4), (3, 1, 1))
    transforms[:, 2, 3] = 0, 1, 2
    skin = Skin(("hip", "knee", "ankle"), np.array([-1, 0, 1], np.int32), transforms, weights)
    return write_glb(Mesh(vertices, faces), skin)


def other_ply(mesh, ascii_text: bool) -> bytes:
    """The mesh as ASCII or big-endian PLY, the two orders that `save` does not write."""
    order = "ascii" if ascii_text else "binary_big_endian"
    header = f"ply\nformat {order} 1.0\nelement vertex {len(mesh.vertices)}\n"
    header += "".join(f"property float {axis}\n" for axis in "xyz")
    header += "".join(f"property uchar {channel}\n" for channel in ("red", "green", "blue"))
    header += f"element face {len(mesh.faces)}\nproperty list uchar int vertex_indices\nend_header\n"
    if ascii_text:
        rows = [
            f"{x:.7g} {y:.7g} {z:.7g} {r} {g} {b}"
            for (x, y, z), (r, g, b, _) in zip(mesh.vertices, mesh.colors, strict=True)
        ]
        rows += [f"3 {a} {b} {c}" for a, b, c in mesh.faces]
        return (header + "\n".join(rows) + "\n").encode()
    vertex = np.zeros(len(mesh.vertices), [("p", ">f4", (3,)), ("c", "u1", (3,))])
    vertex["p"], vertex["c"] = mesh.vertices, mesh.colors[:, :3]
    face = np.zeros(len(mesh.faces), [("n", "u1"), ("v", ">i4", (3,))])
    face["n"], face["v"] = 3, mesh.faces
    return header.encode() + vertex.tobytes() + face.tobytes()


def ascii_stl(mesh) -> bytes:
    """The mesh as ASCII STL."""
    rows = ["solid tube"]
    for corners in mesh.vertices[mesh.faces]:
        rows += ["facet normal 0 0 0", "outer loop", *(f"vertex {x:.7g} {y:.7g} {z:.7g}" for x, y, z in corners)]
        rows += ["endloop", "endfacet"]
    return "\n".join([*rows, "endsolid tube\n"]).encode()


def gltf_from_glb(glb: bytes, binary: Path) -> bytes:
    """The text of a glTF file whose buffer lies beside it."""
    length = int.from_bytes(glb[12:16], "little")
    document = json.loads(glb[20 : 20 + length])
    binary.write_bytes(glb[28 + length :])
    document["buffers"][0]["uri"] = binary.name
    return json.dumps(document).encode()


def npy(array: np.ndarray) -> bytes:
    """The bytes of a .npy file; with Python objects, which readers must refuse, where there are some."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def text(array: np.ndarray, form: str = "%d") -> bytes:
    """Rows of numbers."""
    stream = io.BytesIO()
    np.savetxt(stream, array, fmt=form)
    return stream.getvalue()


def npz(arrays: dict[str, Any]) -> bytes:
    """An archive of arrays, or of what is given as the bytes of one."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", array if isinstance(array, bytes) else npy(array))
    return stream.getvalue()


def damage(data: bytes, suffix: str, rng: np.random.Generator, *, renamed: bool = True) -> tuple[str, bytes, str]:
    """One damaged variant.

    Parameters
    ----------
    data : bytes
        The valid file.
    suffix : str
        Of its name: it decides which structures are known.
    rng : Generator
    renamed : bool
        Whether the suffix may change.

    Returns
    -------
    way : str
        What was done.
    data : bytes
    suffix : str
    """
    ways = ["flip", "cut", "header", "zeros", "repeat", "swap", "word"]
    ways += ["suffix"] if renamed else []
    structured = structure_of(data, suffix)
    if structured is not None and rng.random() < 0.5:
        return structured.__name__, structured(data, rng), suffix
    way = str(rng.choice(ways))
    array = np.frombuffer(data, np.uint8).copy()
    n = len(array)
    if way == "flip":
        count = 2 ** int(rng.integers(0, 7))  # as many single flips, which may pass, as 64, which hardly do
        array[rng.integers(0, n, count)] = rng.integers(0, 256, count)
    elif way == "cut":
        array = array[: int(rng.integers(0, n))]
    elif way == "header":
        count = int(rng.integers(1, 9))
        array[rng.integers(0, min(n, 400), count)] = rng.integers(0, 256, count)
    elif way == "zeros":
        at = int(rng.integers(0, n))
        array[at : at + int(rng.integers(1, 2000))] = 0
    elif way == "repeat":
        at, length = int(rng.integers(0, n)), int(rng.integers(1, 2000))
        return way, data[:at] + data[at : at + length] * 2 + data[at + length :], suffix
    elif way == "swap":
        a, b = sorted(rng.integers(0, n, 2).tolist())
        return way, data[b:] + data[a:b] + data[:a], suffix
    elif way == "suffix":
        return way, data, str(rng.choice([s for s in SUFFIXES if s != suffix]))
    else:
        return way, replaced_word(data, rng), suffix
    return way, array.tobytes(), suffix


def structure_of(data: bytes, suffix: str) -> Callable[[bytes, np.random.Generator], bytes] | None:
    """The mutation that knows the format of a file."""
    if suffix in (".gltf", ".json", ".jsonl"):
        return json_value
    known = {".glb": glb_value, ".safetensors": safetensors_header, ".npz": npz_member, ".npy": npy_header}
    return known.get(suffix)


def replaced_word(data: bytes, rng: np.random.Generator) -> bytes:
    """Another word in place of one of the first 4,000 bytes, or anywhere in a text: numbers and names of files."""
    words = list(re.finditer(rb"[^\s]+", data[: len(data) if data.isascii() else 4000]))
    if not words:
        return b""
    chosen = words[int(rng.integers(len(words)))]
    choice = (*WORDS, *PATHS)
    return data[: chosen.start()] + choice[int(rng.integers(len(choice)))] + data[chosen.end() :]


def json_value(data: bytes, rng: np.random.Generator) -> bytes:
    """Another value, or none, at any depth of a JSON document."""
    lines = data.splitlines()
    number = int(rng.integers(len(lines))) if data.startswith(b'{"step"') else None
    document = json.loads(data if number is None else lines[number])
    changed = json.dumps(changed_document(document, rng)).encode()
    return changed if number is None else b"\n".join([*lines[:number], changed, *lines[number + 1 :]])


def changed_document(document: Any, rng: np.random.Generator) -> Any:
    """The document with one value replaced or removed."""
    document = copy.deepcopy(document)
    inner = document
    while True:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        if not keys:
            return document
        key = keys[int(rng.integers(len(keys)))]
        if isinstance(inner[key], dict | list) and inner[key] and rng.random() < 0.8:
            inner = inner[key]
            continue
        if rng.random() < 0.2:
            del inner[key]
        else:
            inner[key] = VALUES[int(rng.integers(len(VALUES)))]
        return document


def glb_value(data: bytes, rng: np.random.Generator) -> bytes:
    """Another value in the JSON chunk of a binary glTF file, whose lengths stay right."""
    length = int.from_bytes(data[12:16], "little")
    changed = json.dumps(changed_document(json.loads(data[20 : 20 + length]), rng)).encode()
    changed += b" " * (-len(changed) % 4)
    rest = data[20 + length :]
    return (
        b"glTF"
        + struct.pack("<II", 2, 20 + len(changed) + len(rest))
        + struct.pack("<I", len(changed))
        + b"JSON"
        + changed
        + rest
    )


def safetensors_header(data: bytes, rng: np.random.Generator) -> bytes:
    """Another value in the header of a safetensors file, or in the JSON texts of its metadata."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = header.get("__metadata__", {})
    texts = [key for key, value in metadata.items() if value.startswith("{")]
    if texts and rng.random() < 0.5:
        key = texts[int(rng.integers(len(texts)))]
        metadata[key] = json.dumps(changed_document(json.loads(metadata[key]), rng))
        changed = header
    else:
        changed = changed_document(header, rng)
    encoded = json.dumps(changed).encode()
    return len(encoded).to_bytes(8, "little") + encoded + data[8 + length :]


def npz_member(data: bytes, rng: np.random.Generator) -> bytes:
    """One array of an archive damaged, inside a valid archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}
    name = list(members)[int(rng.integers(len(members)))]
    return npz(members | {name: damage(members[name], ".npy", rng, renamed=False)[1]})


def npy_header(data: bytes, rng: np.random.Generator) -> bytes:
    """Another type, order or shape in the header of an array."""
    length = int.from_bytes(data[8:10], "little")
    header = data[10 : 10 + length].decode("latin-1")
    types = ("'|O'", "'<U0'", "'<f4'", "[('a', '<f8')]", "'<c16'", "'>i2'", "'<M8[s]'", "__import__('os')")
    shapes = ("(9000000000, 3)", "(-1,)", "()", "(1,) * 40", "(" * 90, "(0, 3)")
    if rng.random() < 0.5:
        header = re.sub(r"'descr': [^,]+", f"'descr': {types[int(rng.integers(len(types)))]}", header)
    else:
        header = re.sub(r"'shape': \([^)]*\)", f"'shape': {shapes[int(rng.integers(len(shapes)))]}", header)
    encoded = header.strip().encode("latin-1").ljust(length) + b"\n"
    return data[:8] + len(encoded).to_bytes(2, "little") + encoded + data[10 + length :]


@dataclass(frozen=True)
class Outcome:
    """What came of one case: `kind` is one of `GOOD` or `BAD`; memory above that at the start."""

    kind: str
    message: str
    seconds: float
    megabytes: float


def run_cases(chosen: Sequence[Target], rng: np.random.Generator, folder: Path) -> list[tuple[str, Outcome]]:
    """One damaged case of each target, every one in a folder of its own: what was done to it, and what came of it."""
    ways, reads = [], []
    for number, target in enumerate(chosen):
        suffix = Path(target.victim).suffix
        way, content, suffix = damage(target.files[target.victim], suffix, rng, renamed=target.renamed)
        case = folder / f"case{number}"
        case.mkdir()
        for name, data in target.files.items():
            (case / name).write_bytes(data)
        victim = (case / target.victim).with_suffix(suffix)
        victim.write_bytes(content)
        ways.append(way)
        reads.append((partial(target.read, victim), case))
    found = outcomes(reads)
    for _, case in reads:
        shutil.rmtree(case)
    return list(zip(ways, found, strict=True))


def outcome(read: Callable[[], object], folder: Path) -> Outcome:
    """What comes of reading in a process of its own, in which only files of a folder may be opened."""
    return outcomes([(read, folder)])[0]


def outcomes(reads: Sequence[tuple[Callable[[], object], Path]]) -> list[Outcome]:
    """Read one file after the other in a process of its own, and in another one after a crash or a hang.

    Parameters
    ----------
    reads : sequence of (callable, Path)
        How each is read, and the only folder in which files may be opened then.
    """
    found: list[Outcome] = []
    while len(found) < len(reads):
        rest = reads[len(found) :]
        sys.stdout.flush()
        receive, send = os.pipe()
        began = time.perf_counter()
        child = os.fork()
        if child == 0:
            os.close(receive)
            _answer(rest, send)
        os.close(send)
        with os.fdopen(receive, "rb") as stream:
            lines = stream.read().decode("utf-8", "replace").splitlines()
        _, status = os.waitpid(child, 0)
        found += [Outcome(**json.loads(line)) for line in lines]
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            kind = "hang" if name == "SIGALRM" else "crash"
            found.append(Outcome(kind, name, time.perf_counter() - began, 0.0))
    return found


def _answer(reads: Sequence[tuple[Callable[[], object], Path]], send: int) -> NoReturn:
    """In the child: read each file within the limits, and write a line of JSON for each."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    _limit_memory()
    forbidden, own = _watch()
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 2)
        for read, folder in reads:
            signal.alarm(SECONDS)
            Path("/proc/self/clear_refs").write_text("5")  # the peak of the memory begins again
            before, began = _resident(), time.perf_counter()
            own[:] = [str(folder.resolve())]
            try:
                kind, message = _result(read)
            except BaseException as error:
                kind, message = "traceback", f"{type(error).__name__}: {error}"
            sys.stderr.flush()
            printed.seek(0)
            shown = printed.read(2000)
            printed.seek(0)
            printed.truncate()
            if forbidden:
                kind, message = "forbidden", forbidden[0]
            elif shown:  # a library that shows its own tracebacks
                kind, message = "printed", shown.decode("utf-8", "replace")
            elif "not fit into memory" in message:
                kind = "memory"
            own.clear()
            forbidden.clear()
            seconds, memory = time.perf_counter() - began, _resident(peak=True) - before
            line = {"kind": kind, "message": message[:2000], "seconds": seconds, "megabytes": memory}
            os.write(send, (json.dumps(line) + "\n").encode())
    os._exit(0)


def load_and_check(path: Path) -> object:
    """Load a shape and check what loading promises of it."""
    from acnn.shapes import Mesh, describe, load

    shape = load(path)
    facts = describe(shape)
    json.dumps(facts, allow_nan=False)
    assert shape.source is not None
    assert np.isfinite(shape.vertices).all(), "coordinates are not finite"
    assert len(shape.source.to_file) == len(shape.vertices), "to_file has another length"
    if isinstance(shape, Mesh):
        assert facts["manifold"], "no manifold after repair"
        assert facts["oriented"], "not oriented after repair"
        assert facts["area"] > 0, "no area after repair"
        assert len(np.unique(shape.faces)) == len(shape.vertices), "unreferenced vertices after repair"
    return shape


def _result(read: Callable[[], object]) -> tuple[str, str]:
    from acnn.errors import InputError

    try:
        result = read()
    except InputError as error:
        return "error", str(error)
    source = getattr(result, "source", None)
    repaired = source is not None and any(finding.repaired for finding in source.findings)
    return "repaired" if repaired else "read", type(result).__name__


STARTS = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "socket.connect",
    "pickle.find_class",
)


def _watch() -> tuple[list[str], list[str]]:
    """From now on, what this process does that reading must not do, and the folders whose files it may open.

    Nothing is watched while there are no folders.
    """
    seen: list[str] = []
    own: list[str] = []
    code = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[1]), "/proc/", "/dev/", "/sys/")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if not own:
            return
        if event in STARTS:
            seen.append(f"{event} {arguments!r:.200}")
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            flags = arguments[2] if isinstance(arguments[2], int) else 0
            writes = bool(flags & (os.O_WRONLY | os.O_RDWR))
            if not path.startswith(own[0]) and (writes or not path.startswith(code)) and not path.startswith("/dev/"):
                seen.append(f"{'writes' if writes else 'reads'} {path}")

    sys.addaudithook(hook)
    return seen, own


def _limit_memory() -> None:
    with open("/proc/self/statm") as stream:
        now = int(stream.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + GIGABYTES * 2**30, resource.RLIM_INFINITY))


def _resident(peak: bool = False) -> float:
    """Resident memory in MB."""
    with open("/proc/self/status") as stream:
        return int(re.search(r"VmHWM:\s+(\d+)" if peak else r"VmRSS:\s+(\d+)", stream.read())[1]) / 1024


def guided(chosen: list[Target], seconds: int, folder: Path) -> None:
    """Let atheris change the files of all targets for some seconds, guided by the code that they reach."""
    import atheris

    from acnn.errors import InputError

    atheris.instrument_all()

    def one(data: bytes) -> None:
        if not data:
            return
        target = chosen[data[0] % len(chosen)]
        for name, content in target.files.items():
            (folder / name).write_bytes(content)
        victim = folder / target.victim
        victim.write_bytes(data[1:])
        with suppress(InputError):
            target.read(victim)

    corpus = folder.parent / "corpus"
    corpus.mkdir()
    for number, target in enumerate(chosen):
        (corpus / str(number)).write_bytes(bytes([number]) + target.files[target.victim])
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-rss_limit_mb=4096", "-timeout=10", str(corpus)], one)
    atheris.Fuzz()


def main() -> int:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", default="", help="readers, separated by commas: ply, obj, values, map, run, cache, ..."
    )
    parser.add_argument("--guided", type=int, metavar="SECONDS", help="coverage-guided, with atheris")
    parser.add_argument("--show", action="store_true", help="print every message")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    groups = set(filter(None, options.only.split(",")))
    table: dict[str, Counter[str]] = {}
    slowest, largest, failed = 0.0, 0.0, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chosen = [target for target in targets(folder) if not groups or target.name.split()[0] in groups]
        if not chosen:
            parser.error(f"no reader is called {options.only}")
        if options.guided:
            (folder / "guided").mkdir()
            guided(chosen, options.guided, folder / "guided")
            return 0
        for target in chosen:  # what is imported only when reading is imported here, not in every child
            (folder / "valid").mkdir()
            for file, data in target.files.items():
                (folder / "valid" / file).write_bytes(data)
            target.read(folder / "valid" / target.victim)
            shutil.rmtree(folder / "valid")
        for first in range(0, options.count, len(chosen)):
            batch = chosen[: options.count - first]
            for target, (way, found) in zip(batch, run_cases(batch, rng, folder), strict=True):
                slowest, largest = max(slowest, found.seconds), max(largest, found.megabytes)
                table.setdefault(target.name.split()[0], Counter())[found.kind] += 1
                line = f"seed {options.seed}, from {first}: {target.name:28s} {way:18s} {found.kind:8s} {found.message}"
                if found.kind not in GOOD:
                    failed.append(line)
                if options.show:
                    print(line)
    print(f"acnn, numpy {np.__version__}, {platform.platform()}")
    print(f"{options.count} cases of {len(chosen)} files, seed {options.seed}")
    print(f"{'reader':12s}" + "".join(f"{kind:>11s}" for kind in (*GOOD, *BAD)))
    for reader in sorted(table):
        print(f"{reader:12s}" + "".join(f"{table[reader][kind]:11d}" for kind in (*GOOD, *BAD)))
    print(f"{'all':12s}" + "".join(f"{sum(row[kind] for row in table.values()):11d}" for kind in (*GOOD, *BAD)))
    print(f"slowest {slowest:.2f} s, most memory {largest:.0f} MB above the start")
    for line in failed:
        print(line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
