"""Shapes: reading, writing, checking and repairing meshes and point clouds."""

from acnn.shapes.shape import Finding, Mesh, PointCloud, Shape, Source, Texture

__all__ = ["Finding", "Mesh", "PointCloud", "Shape", "Source", "Texture"]
