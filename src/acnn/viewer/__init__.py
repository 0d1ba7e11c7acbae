"""Viewer: pictures of shapes, maps and errors."""

from acnn.viewer.pictures import grid, position_colors, render, save_png, value_colors

__all__ = ["grid", "position_colors", "render", "save_png", "value_colors"]
