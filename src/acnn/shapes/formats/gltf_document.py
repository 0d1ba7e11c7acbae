"""The JSON of a glTF file: whether everything that is read of it is there, of the right kind and in range.

What passes is trusted by the reader, so that it need not look again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acnn.shapes.formats.raw import FormatError

COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
LARGEST = 1 << 53
"""Whole numbers up to here are exact in JSON."""


@dataclass(frozen=True)
class _Index:
    """A number that names an entry of one of the document's lists."""

    of: str


@dataclass(frozen=True)
class _Numbers:
    """A list of so many numbers."""

    count: int


@dataclass(frozen=True)
class _OneOf:
    """One of some values."""

    values: Mapping[Any, Any]


# A rule is a type, one of the above, [rule] for a list, {key: rule} for an object, {...: rule} for any keys. A key that
# ends in '!' must be there; keys that are not listed are not read.
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


def checked_document(document: Any) -> dict[str, Any]:
    """The document itself, where all that is read of it is as glTF 2.0 lays down.

    Raises FormatError that names the place where it is not.
    """
    if not isinstance(document, dict):
        raise FormatError("it is not glTF 2.0")
    _check(document, _RULES, "", document)
    return document


def _check(value: Any, rule: Any, where: str, document: dict[str, Any]) -> None:
    if isinstance(rule, dict):
        _demand(isinstance(value, dict), value, "an object", where)
        for key, inner in rule.items():
            for name in value if key is ... else [key.rstrip("!")]:
                if name in value:
                    _check(value[name], inner, f"{where}.{name}" if where else name, document)
                elif key.endswith("!"):
                    raise FormatError(f"'{where or 'the document'}' has no '{name}'")
    elif isinstance(rule, list):
        _demand(isinstance(value, list), value, "a list", where)
        for number, item in enumerate(value):
            _check(item, rule[0], f"{where}[{number}]", document)
    elif isinstance(rule, _Numbers):
        fits = isinstance(value, list) and len(value) == rule.count and all(map(_is_number, value))
        _demand(fits, value, f"a list of {rule.count} numbers", where)
    elif isinstance(rule, _OneOf):
        _demand(isinstance(value, int | str) and value in rule.values, value, "a value of glTF 2.0", where)
    elif isinstance(rule, _Index):
        entries = document.get(rule.of, [])
        count = len(entries) if isinstance(entries, list) else 0
        _demand(_is_count(value) and value < count, value, f"one of the {count} {rule.of}", where)
    elif rule is int:
        _demand(_is_count(value), value, "a whole number", where)
    else:
        _demand(isinstance(value, rule), value, {str: "text", dict: "an object"}[rule], where)


def _demand(fits: bool, value: Any, what: str, where: str) -> None:
    if not fits:
        raise FormatError(f"'{where}' is {repr(value)[:40]}, but {what} is needed")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) <= LARGEST)
