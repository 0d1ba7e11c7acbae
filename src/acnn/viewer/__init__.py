"""Viewer: pictures of shapes, maps and errors."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from acnn.viewer.pictures import grid, position_colors, render, save_png, value_colors

if TYPE_CHECKING:
    from acnn.viewer.demo_pages import show_demo, show_first_match
    from acnn.viewer.matches import draw_matches

__all__ = [
    "draw_matches",
    "grid",
    "position_colors",
    "render",
    "save_png",
    "show_demo",
    "show_first_match",
    "value_colors",
]

_NEED_TORCH = {
    "draw_matches": "acnn.viewer.matches",
    "show_demo": "acnn.viewer.demo_pages",
    "show_first_match": "acnn.viewer.demo_pages",
}


def __getattr__(name: str) -> Any:
    if name in _NEED_TORCH:  # and plain pictures of shapes do not
        return getattr(import_module(_NEED_TORCH[name]), name)
    raise AttributeError(f"module 'acnn.viewer' has no attribute {name!r}")
