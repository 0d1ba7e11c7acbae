"""The JSON document and the binary buffers of a glTF file: validation, and access as arrays.

The reader relies on the validation and checks nothing again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.formats.raw import FormatError, read_beside

COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
MAX_INTEGER = 1 << 53
"""Integers up to here are exact in JSON."""


@dataclass(frozen=True)
class _Index:
    """An index into one of the document's lists."""

    of: str


@dataclass(frozen=True)
class _Numbers:
    """A list of `count` numbers."""

    count: int


@dataclass(frozen=True)
class _OneOf:
    """One of the given values."""

    values: Mapping[Any, Any]


# A rule is a type, one of the above, [rule] for a list, {key: rule} for an object, {...: rule} for any keys. A key that
# ends in '!' is required; keys that are not listed are not read.
_SPARSE = {"bufferView!": _Index("bufferViews"), "byteOffset": int}
_RULES: dict[Any, Any] = {
    "asset!": {"version!": str},
    "extensionsRequired": [str],
    "scene": _Index("scenes"),
    "scenes": [{"nodes": [_Index("nodes")]}],
    "nodes": [
        {
            "children": [_Index("nodes")],
            "mesh": _Index("meshes"),
            "matrix": _Numbers(16),
            "rotation": _Numbers(4),
            "scale": _Numbers(3),
            "translation": _Numbers(3),
        }
    ],
    "meshes": [
        {
            "primitives!": [
                {
                    "attributes!": {...: _Index("accessors")},
                    "indices": _Index("accessors"),
                    "material": _Index("materials"),
                    "mode": int,
                    "targets": [dict],
                    "extensions": dict,
                }
            ]
        }
    ],
    "accessors": [
        {
            "count!": int,
            "type!": _OneOf(WIDTHS),
            "componentType!": _OneOf(COMPONENTS),
            "bufferView": _Index("bufferViews"),
            "byteOffset": int,
            "sparse": {
                "count!": int,
                "indices!": {**_SPARSE, "componentType!": _OneOf(COMPONENTS)},
                "values!": _SPARSE,
            },
        }
    ],
    "bufferViews": [{"buffer!": _Index("buffers"), "byteOffset": int, "byteLength!": int, "byteStride": int}],
    "buffers": [{"uri": str, "byteLength!": int}],
    "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index!": _Index("textures"), "texCoord": int}}}],
    "textures": [{"source": _Index("images"), "extensions": {"EXT_texture_webp": {"source": _Index("images")}}}],
    "images": [{"uri": str, "bufferView": _Index("bufferViews")}],
}


_SKIN_RULES: dict[Any, Any] = {
    "nodes": [{"skin": _Index("skins"), "name": str}],
    "skins": [{"joints!": [_Index("nodes")], "inverseBindMatrices": _Index("accessors")}],
}
"""Checked only where a skin is read, since shapes are also read from files whose skins are damaged."""


def validate_document(document: Any, *, skins: bool = False) -> dict[str, Any]:
    """Validate the parts of a document that are read against glTF 2.0; with `skins`, those of skins as well.

    Returns
    -------
    dict[str, Any]
        The document itself.

    Raises
    ------
    FormatError
        Where it is not valid, with the path of the entry.
    """
    if not isinstance(document, dict):
        raise FormatError("it is not glTF 2.0")
    _check(document, _RULES, "", document)
    if skins:
        _check(document, _SKIN_RULES, "", document)
    return document


def _check(value: Any, rule: Any, where: str, document: dict[str, Any]) -> None:
    if isinstance(rule, dict):
        _require(isinstance(value, dict), value, "an object", where)
        for key, inner in rule.items():
            for name in value if key is ... else [key.rstrip("!")]:
                if name in value:
                    _check(value[name], inner, f"{where}.{name}" if where else name, document)
                elif key.endswith("!"):
                    raise FormatError(f"'{where or 'the document'}' has no '{name}'")
    elif isinstance(rule, list):
        _require(isinstance(value, list), value, "a list", where)
        for number, item in enumerate(value):
            _check(item, rule[0], f"{where}[{number}]", document)
    elif isinstance(rule, _Numbers):
        fits = isinstance(value, list) and len(value) == rule.count and all(map(_is_number, value))
        _require(fits, value, f"a list of {rule.count} numbers", where)
    elif isinstance(rule, _OneOf):
        _require(isinstance(value, int | str) and value in rule.values, value, "a value of glTF 2.0", where)
    elif isinstance(rule, _Index):
        entries = document.get(rule.of, [])
        count = len(entries) if isinstance(entries, list) else 0
        _require(_is_count(value) and value < count, value, f"one of the {count} {rule.of}", where)
    elif rule is int:
        _require(_is_count(value), value, "a non-negative integer", where)
    else:
        _require(isinstance(value, rule), value, {str: "text", dict: "an object"}[rule], where)


def _require(fits: bool, value: Any, what: str, where: str) -> None:
    if not fits:
        raise FormatError(f"'{where}' is {repr(value)[:40]}, but {what} is needed")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INTEGER


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) <= MAX_INTEGER)


def split_chunks(data: bytes) -> tuple[Any, bytes]:
    """Split a file into its JSON document and its binary chunk (empty for plain glTF)."""
    if data[:4] != b"glTF":
        return _json(data), b""
    if len(data) < 20 or int.from_bytes(data[4:8], "little") != 2:
        raise FormatError("it is not GLB version 2")
    if int.from_bytes(data[8:12], "little") > len(data):
        promised = int.from_bytes(data[8:12], "little")
        raise FormatError(f"the header promises {promised} bytes, but the file has {len(data)}: it is truncated")
    chunks: dict[bytes, bytes] = {}
    at = 12
    while at + 8 <= len(data):
        length, kind = int.from_bytes(data[at : at + 4], "little"), data[at + 4 : at + 8]
        if at + 8 + length > len(data):
            raise FormatError(f"the chunk at byte {at} promises {length} bytes, but the file ends before them")
        chunks.setdefault(kind, data[at + 8 : at + 8 + length])
        at += 8 + length
    if b"JSON" not in chunks:
        raise FormatError("its JSON chunk is missing")
    return _json(chunks[b"JSON"]), chunks.get(b"BIN\0", b"")


class Buffers:
    """The arrays that a glTF document describes."""

    def __init__(self, document: dict[str, Any], chunk: bytes, path: Path) -> None:
        self.document, self.path = document, path
        self.buffers = [self._buffer(i, b, chunk) for i, b in enumerate(document.get("buffers", []))]
        self.cache: dict[int, NDArray[Any]] = {}

    def _buffer(self, number: int, buffer: dict[str, Any], chunk: bytes) -> bytes:
        data = chunk if "uri" not in buffer else resolve(buffer["uri"], self.path)
        if data is None:
            raise FormatError(
                f"buffer {number} ('{buffer['uri'][:60]}') is not a file in the same folder; put it there, "
                "or export one GLB file"
            )
        if buffer["byteLength"] > len(data):
            raise FormatError(
                f"buffer {number} promises {buffer['byteLength']} bytes, but has {len(data)}: it is truncated"
            )
        return data

    def view(self, number: int) -> tuple[bytes, int]:
        """Bytes of a buffer view, and its stride (0 where none is given)."""
        view = self.document["bufferViews"][number]
        begin, length = view.get("byteOffset", 0), view["byteLength"]
        buffer = self.buffers[view["buffer"]]
        if begin + length > len(buffer):
            raise FormatError(f"buffer view {number} reaches beyond its buffer")
        return buffer[begin : begin + length], view.get("byteStride", 0)

    def accessor(self, number: int) -> NDArray[Any]:
        """The (count, width) array of an accessor."""
        if number in self.cache:
            return self.cache[number]
        accessor = self.document["accessors"][number]
        count, width = accessor["count"], WIDTHS[accessor["type"]]
        dtype = np.dtype(COMPONENTS[accessor["componentType"]])
        if "bufferView" in accessor:
            array = self._strided(accessor, count, width, dtype, number)
        elif count <= sum(map(len, self.buffers)):
            array = np.zeros((count, width), dtype)
        else:
            raise FormatError(f"accessor {number} promises {count} entries, more than the file can hold")
        if "sparse" in accessor:
            sparse = accessor["sparse"]
            kind = np.dtype(COMPONENTS[sparse["indices"]["componentType"]])
            index = self._strided(sparse["indices"], sparse["count"], 1, kind, number).reshape(-1)
            if kind.kind != "u" or (len(index) and int(index.max()) >= count):
                raise FormatError(f"accessor {number} replaces entries that it does not have")
            array = array.copy()
            array[index] = self._strided(sparse["values"], sparse["count"], width, dtype, number)
        self.cache[number] = array
        return array

    def _strided(self, part: dict[str, Any], count: int, width: int, dtype: np.dtype, number: int) -> NDArray[Any]:
        """(count, width) entries of the buffer view that a part of accessor `number` names."""
        data, stride = self.view(part["bufferView"])
        begin, row = part.get("byteOffset", 0), width * dtype.itemsize
        stride = stride or row
        if stride < row or (count and begin + (count - 1) * stride + row > len(data)):
            raise FormatError(f"accessor {number} reaches beyond its buffer view: the file is truncated or damaged")
        if count == 0:
            return np.zeros((0, width), dtype)
        return np.ndarray((count, width), dtype, data, begin, (stride, dtype.itemsize))

    def floats(self, number: int) -> NDArray[np.float64]:
        """The array of an accessor as float64, with normalised integers scaled to 0..1 or -1..1."""
        array = self.accessor(number)
        values = array.astype(np.float64)
        if self.document["accessors"][number].get("normalized") and array.dtype.kind in "iu":
            values = np.maximum(values / np.iinfo(array.dtype).max, -1.0)
        return values

    def attribute(self, number: int | None, count: int, widths: tuple[int, ...]) -> NDArray[np.float64] | None:
        """The array of an attribute, one row for each of `count` vertices, or None where there is none."""
        if number is None:
            return None
        values = self.floats(number)
        if len(values) != count or values.shape[1] not in widths:
            raise FormatError(f"accessor {number} has {values.shape} entries, but there are {count} vertices")
        return values


def resolve(uri: str, path: Path) -> bytes | None:
    """The bytes that a URI refers to: in the document itself or in the same folder; None for anything else."""
    if uri.startswith("data:"):
        head, _, body = uri.partition(",")
        try:
            return base64.b64decode(body, validate=False) if head.endswith(";base64") else None
        except ValueError:
            return None
    return read_beside(path, unquote(uri))


def _json(text: bytes) -> Any:
    try:
        return json.loads(text.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise FormatError(f"its JSON is damaged at line {error.lineno}, column {error.colno} ({error.msg})") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"its JSON is damaged at byte {error.start}") from error
    except RecursionError as error:
        raise FormatError("its JSON is nested too deeply") from error
