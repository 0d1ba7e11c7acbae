"""Surface: curvature, Laplacians, spectra, heat kernels and geodesics on meshes and clouds."""

from acnn.surface.curvature import curvature_tensors, principal_frames
from acnn.surface.geodesics import GeodesicSolver, geodesic_diameter, geodesics_from
from acnn.surface.heat import exact_rows, spectral_rows
from acnn.surface.laplacian import StiffnessParts, stiffness, stiffness_parts
from acnn.surface.spectra import Spectra, SpectraSettings, compute_spectra, eigenpairs
from acnn.surface.surface import REFERENCE_LENGTH, Surface, surface_of, vertex_normals

__all__ = [
    "REFERENCE_LENGTH",
    "GeodesicSolver",
    "Spectra",
    "SpectraSettings",
    "StiffnessParts",
    "Surface",
    "compute_spectra",
    "curvature_tensors",
    "eigenpairs",
    "exact_rows",
    "geodesic_diameter",
    "geodesics_from",
    "principal_frames",
    "spectral_rows",
    "stiffness",
    "stiffness_parts",
    "surface_of",
    "vertex_normals",
]
