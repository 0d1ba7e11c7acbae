"""Viewer: pictures of shapes, maps and errors."""

from typing import TYPE_CHECKING, Any

from acnn.viewer.pictures import grid, position_colors, render, save_png, value_colors

if TYPE_CHECKING:
    from acnn.viewer.matches import draw_matches

__all__ = ["draw_matches", "grid", "position_colors", "render", "save_png", "value_colors"]


def __getattr__(name: str) -> Any:
    if name == "draw_matches":  # needs torch, which pictures of shapes do not
        from acnn.viewer.matches import draw_matches

        return draw_matches
    raise AttributeError(f"module 'acnn.viewer' has no attribute {name!r}")
