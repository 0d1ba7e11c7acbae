"""How loading takes damaged files: flipped bytes, files cut short, mangled headers, lying names.

Every variant is loaded in a process of its own that may take 10 s and 2 GB. It must end in a sound shape or in an
InputError, and print nothing; the table says how many did what.

    python benchmarks/damaged_files.py --count 1000 --seed 0

With ACNN_DATA set, real files found there are damaged besides the ones written here.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

SECONDS, GIGABYTES = 10, 2
SUFFIXES = (".ply", ".off", ".obj", ".stl", ".glb", ".gltf", ".xyz", ".npy", ".txt", "")
WAYS = ("flip", "cut", "header", "huge-number", "extension", "zeros", "repeat", "swap")


def write_originals(folder: Path) -> list[Path]:
    """Small sound files in every format, with colours and texture where the format has them."""
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


def damage(data: bytes, suffix: str, rng: np.random.Generator) -> tuple[str, bytes, str]:
    """One damaged variant: in what way, its bytes, and its (perhaps lying) suffix."""
    way = str(rng.choice(WAYS))
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
    elif way == "huge-number":
        numbers = list(re.finditer(rb"\d+", data[:2000]))
        if numbers:
            chosen = numbers[int(rng.integers(len(numbers)))]
            value = rng.choice([b"-1", b"0", b"99999999", b"4294967295", b"9223372036854775807", b"1e400", b"nan"])
            return way, data[: chosen.start()] + bytes(value) + data[chosen.end() :], suffix
        at = int(rng.integers(0, min(n, 200)))
        array[at : at + 4] = 255
    elif way == "extension":
        return way, data, str(rng.choice([s for s in SUFFIXES if s != suffix]))
    elif way == "zeros":
        at = int(rng.integers(0, n))
        array[at : at + int(rng.integers(1, 2000))] = 0
    elif way == "repeat":
        at, length = int(rng.integers(0, n)), int(rng.integers(1, 2000))
        return way, data[:at] + data[at : at + length] * 2 + data[at + length :], suffix
    else:
        a, b = sorted(rng.integers(0, n, 2).tolist())
        return way, data[b:] + data[a:b] + data[:a], suffix
    return way, array.tobytes(), suffix


def outcome(path: Path) -> tuple[str, str, float, float]:
    """Load a file in a process of its own: what came of it, the message, seconds, and megabytes above the start."""
    sys.stdout.flush()
    receive, send = os.pipe()
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.close(receive)
        code = 0
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            before = _resident()
            _limit_memory()
            with tempfile.TemporaryFile() as said:
                os.dup2(said.fileno(), 2)
                text = _load_and_check(path)
                sys.stderr.flush()
                said.seek(0)
                if printed := said.read(2000):  # a library that shows its own tracebacks
                    text = f"PRINTED {printed.decode('utf-8', 'replace')}"
            os.write(send, f"{text}\n{_resident(peak=True) - before}".encode()[:4000])
        except BaseException as error:
            os.write(send, f"TRACEBACK {type(error).__name__}: {error}\n0".encode()[:4000])
            code = 1
        finally:
            os._exit(code)
    os.close(send)
    with os.fdopen(receive, "rb") as stream:
        text = stream.read().decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    seconds = time.perf_counter() - began
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return ("hang" if name == "SIGALRM" else "crash"), name, seconds, 0.0
    message, _, memory = text.rpartition("\n")
    kind, _, rest = message.partition(" ")
    if "not fit into memory" in rest:
        kind = "MEMORY"
    return kind.lower(), rest, seconds, float(memory or 0)


def _load_and_check(path: Path) -> str:
    from acnn.errors import InputError
    from acnn.shapes import Mesh, describe, load

    try:
        shape = load(path)
    except InputError as error:
        return f"ERROR {error}"
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
    return f"{'REPAIRED' if any(f.repaired for f in shape.source.findings) else 'SHAPE'} {shape}"


def _limit_memory() -> None:
    with open("/proc/self/statm") as stream:
        now = int(stream.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + GIGABYTES * 2**30, resource.RLIM_INFINITY))


def _resident(peak: bool = False) -> float:
    """Resident memory in MB."""
    with open("/proc/self/status") as stream:
        return int(re.search(r"VmHWM:\s+(\d+)" if peak else r"VmRSS:\s+(\d+)", stream.read())[1]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print every message")
    options = parser.parse_args()
    import scipy.sparse.csgraph
    import trimesh

    import acnn.shapes.check  # noqa: F401  # imported before forking, so that no child pays for it

    rng = np.random.default_rng(options.seed)
    table: dict[str, Counter] = {}
    slowest, largest, bad = 0.0, 0.0, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        originals = write_originals(folder)
        data = os.environ.get("ACNN_DATA")
        if data:
            found = sorted(p for s in ("ply", "off", "obj") for p in Path(data).rglob(f"*.{s}"))
            originals += [found[i] for i in rng.choice(len(found), min(20, len(found)), replace=False)] if found else []
        for number in range(options.count):
            original = originals[number % len(originals)]
            way, content, suffix = damage(original.read_bytes(), original.suffix, rng)
            path = folder / f"variant{suffix}"
            path.write_bytes(content)
            kind, message, seconds, memory = outcome(path)
            path.unlink()
            slowest, largest = max(slowest, seconds), max(largest, memory)
            table.setdefault(way, Counter())[kind] += 1
            if kind not in ("shape", "repaired", "error"):
                bad.append(f"{number} {original.name} {way}: {kind} {message}")
            if options.show:
                print(f"{number:4d} {original.name:16s} {way:12s} {kind:8s} {message}")
    print(
        f"acnn, numpy {np.__version__}, scipy {scipy.__version__}, trimesh {trimesh.__version__}, {platform.platform()}"
    )
    print(f"{options.count} variants of {len(originals)} files, seed {options.seed}")
    kinds = ("shape", "repaired", "error", "traceback", "printed", "hang", "memory", "crash")
    print(f"{'damage':14s}" + "".join(f"{k:>11s}" for k in kinds))
    for way in sorted(table):
        print(f"{way:14s}" + "".join(f"{table[way][k]:11d}" for k in kinds))
    print(f"{'all':14s}" + "".join(f"{sum(t[k] for t in table.values()):11d}" for k in kinds))
    print(f"slowest {slowest:.2f} s, most memory {largest:.0f} MB above the start")
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
