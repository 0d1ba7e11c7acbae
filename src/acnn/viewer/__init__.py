"""Viewer: rendered images of shapes, maps and errors, web pages, and the live viewer."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from acnn.viewer.images import grid, position_colors, render, save_png, value_colors

if TYPE_CHECKING:
    from acnn.viewer.figure_parts import draw_matches

__all__ = ["draw_matches", "grid", "position_colors", "render", "save_png", "value_colors"]


def __getattr__(name: str) -> Any:
    if name == "draw_matches":  # loads torch, which plain images of shapes do not need
        return import_module("acnn.viewer.figure_parts").draw_matches
    raise AttributeError(f"module 'acnn.viewer' has no attribute {name!r}")
