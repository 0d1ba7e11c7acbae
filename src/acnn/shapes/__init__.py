"""Shapes: reading, writing, checking and repairing meshes and point clouds."""

from acnn.shapes.arrays import from_arrays
from acnn.shapes.describe import describe
from acnn.shapes.load import load, load_skin
from acnn.shapes.mesh import BarycentricPoints, Finding, Mesh, PointCloud, Shape, Source, Texture
from acnn.shapes.save import save
from acnn.shapes.skin import Skin

__all__ = [
    "BarycentricPoints",
    "Finding",
    "Mesh",
    "PointCloud",
    "Shape",
    "Skin",
    "Source",
    "Texture",
    "describe",
    "from_arrays",
    "load",
    "load_skin",
    "save",
]
