"""Shape files with hostile content: each ends in a valid shape or a clear error, within 10 s and 2 GB."""

import copy
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from damage import benchmark

from acnn.errors import InputError
from acnn.shapes import load

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (
            "a.ply",
            b"ply\nformat binary_little_endian 1.0\nelement vertex 9000000000000\nproperty float x\n"
            b"property float y\nproperty float z\nend_header\n" + bytes(100),
        ),
        (
            "a.ply",
            b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n"
            b"element face 1\nproperty list int int vertex_indices\nend_header\n0 0 0\n2000000000 1 2 3\n",
        ),
        ("a.off", b"OFF\n4000000000 1 0\n0 0 0\n"),
        (
            "a.npy",
            b"\x93NUMPY\x01\x00\x76\x00"
            + b"{'descr': '<f8', 'fortran_order': False, 'shape': (9000000000, 3), }".ljust(117)
            + b"\n",
        ),
        (
            "a.gltf",
            b'{"asset":{"version":"2.0"},"meshes":[{"primitives":[{"attributes":{"POSITION":0}}]}],'
            b'"accessors":[{"count":9000000000,"type":"VEC3","componentType":5126}]}',
        ),
        ("a.gltf", b'{"asset":{"version":"2.0"},"nodes":[{"children":[0]}],"scenes":[{"nodes":[0]}]}'),
        ("a.gltf", b'{"asset":' + b"[" * 200000),
        ("a.stl", bytes(80) + b"\xff\xff\xff\xff" + bytes(50)),
    ],
)
def test_absurd_promises_are_refused_at_once(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    found = benchmark.outcome(lambda: load(tmp_path / name), tmp_path)
    assert found.kind == "error", found
    assert found.megabytes < 100


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each value inside a JSON document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*at, key)
        yield from places(inner, (*at, key))


def textured_gltf(folder: Path) -> dict[str, Any]:
    """A glTF document that uses all that is read of the format; its buffer is written beside it."""
    benchmark.write_originals(folder)
    data = (folder / "textured.glb").read_bytes()
    document = json.loads(benchmark.gltf_from_glb(data, folder / "all.bin"))
    first = {"count": 1, "indices": {"bufferView": 1, "componentType": 5121}, "values": {"bufferView": 0}}
    document["accessors"][0]["sparse"] = first
    turned = {"rotation": [0, 0, 0, 1], "scale": [1, 1, 1], "translation": [0, 0, 0], "children": []}
    document["nodes"][0] |= turned
    return document


def test_a_gltf_document_with_any_value_missing_or_of_another_kind(tmp_path: Path) -> None:
    document = textured_gltf(tmp_path)
    path = tmp_path / "a.gltf"
    path.write_text(json.dumps(document))
    assert load(path).texture is not None
    wrong = [None, True, -1, 10**9, 2**70, 1.5, float("nan"), "x", "\ud800", [], [0], {}, "left out"]
    kinds, messages = set(), []
    for number, place in enumerate(places(document)):
        for value in (wrong[number % len(wrong)], wrong[(5 * number + 7) % len(wrong)], "left out"):
            other = copy.deepcopy(document)
            inner = other
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            if value == "left out":
                del inner[place[-1]]
            path.write_text(json.dumps(other))
            try:
                kinds.add(type(load(path)).__name__)
            except InputError as error:
                messages.append(str(error))
    assert kinds == {"Mesh"}
    assert len(messages) > 100
    assert all(re.fullmatch(r"a\.gltf: .*\.", message) for message in messages)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n9223372036854775807 0 1 2\n"),
        ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf /1/2 /2/2 /3/2 /1/2\n"),
        ("a.xyz", "nan\n0 0 0\n1 0 0\n"),
        (
            "a.ply",
            "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n"
            "element face 1\nproperty list int int vertex_indices\nend_header\n0 0 0\n9223372036854775807 1 2 3\n",
        ),
        (
            "b.ply",
            "ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty list float uchar x\nend_header\n"
            "\x00\x00\xc0\x7f\x7f\x7f",
        ),
    ],
)
def test_numbers_that_no_reader_expects_are_reported(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=name) as caught:
        load(tmp_path / name)
    assert "Error" not in str(caught.value)
