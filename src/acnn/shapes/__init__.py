"""Shapes: reading, writing, checking and repairing meshes and point clouds."""

from acnn.shapes.arrays import from_arrays
from acnn.shapes.description import describe
from acnn.shapes.loading import load
from acnn.shapes.saving import save
from acnn.shapes.shape import Finding, Mesh, PointCloud, Shape, Source, Texture

__all__ = ["Finding", "Mesh", "PointCloud", "Shape", "Source", "Texture", "describe", "from_arrays", "load", "save"]
