"""Dense correspondence between deformable 3D shapes with anisotropic convolutional neural networks.

Names below are imported when first used, so that `import acnn` is quick.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from acnn._version import __version__

_WHERE = {
    "InputError": "acnn.errors",
    "Mesh": "acnn.shapes",
    "PatchOperator": "acnn.patches",
    "PatchSettings": "acnn.patches",
    "PointCloud": "acnn.shapes",
    "anisotropic_laplacian": "acnn.array_functions",
    "build_patches": "acnn.patches",
    "builtin_human": "acnn.datasets",
    "builtin_humans": "acnn.datasets",
    "cached_patches": "acnn.training.prepared",
    "cotangent_laplacian": "acnn.array_functions",
    "describe": "acnn.shapes",
    "eigenpairs": "acnn.array_functions",
    "evaluate_run": "acnn.runs.evaluate",
    "from_arrays": "acnn.shapes",
    "geodesic_distances": "acnn.array_functions",
    "heat_kernel_rows": "acnn.array_functions",
    "load": "acnn.shapes",
    "make_family": "acnn.datasets",
    "match": "acnn.runs.match",
    "match_files": "acnn.runs.match_files",
    "match_shape": "acnn.runs.match",
    "open_dataset": "acnn.datasets",
    "open_run": "acnn.methods.run",
    "preset_config": "acnn.training",
    "principal_curvatures": "acnn.array_functions",
    "principal_directions": "acnn.array_functions",
    "refine": "acnn.correspondence",
    "register": "acnn.runs.register",
    "render": "acnn.viewer",
    "save": "acnn.shapes",
    "segment_shape": "acnn.runs.segment",
    "shape_statistics": "acnn.registration",
    "shot": "acnn.descriptors",
    "shot_descriptors": "acnn.array_functions",
    "surface_of": "acnn.surface",
    "train_run": "acnn.runs.train",
    "transfer_shape": "acnn.registration",
    "transfer_texture": "acnn.correspondence",
}

_DEPRECATED = {
    "AcnnModel": ("acnn.network", "ShapeNetwork", "acnn.nn.ShapeNetwork"),
    "IntrinsicConv": ("acnn.network", "IntrinsicConv", "acnn.nn.IntrinsicConv"),
    "Patches": ("acnn.network", "Patches", "acnn.nn.Patches"),
    "carry_shape": ("acnn.registration", "transfer_shape", "acnn.transfer_shape"),
    "carry_texture": ("acnn.correspondence", "transfer_texture", "acnn.transfer_texture"),
    "match_pair": ("acnn.runs.match", "match_pair", "acnn.match"),
}
"""Older names that work for one release: the module, the name there, and what to use instead."""

_MODULES = ("nn", "testing")
"""Modules that are attributes of the package without being imported: `acnn.nn.IntrinsicConv`."""

__all__ = sorted(_WHERE)

if TYPE_CHECKING:
    from acnn import nn, testing
    from acnn.array_functions import (
        anisotropic_laplacian,
        cotangent_laplacian,
        eigenpairs,
        geodesic_distances,
        heat_kernel_rows,
        principal_curvatures,
        principal_directions,
        shot_descriptors,
    )
    from acnn.correspondence import refine, transfer_texture
    from acnn.datasets import builtin_human, builtin_humans, make_family, open_dataset
    from acnn.descriptors import shot
    from acnn.errors import InputError
    from acnn.methods.run import open_run
    from acnn.patches import PatchOperator, PatchSettings, build_patches
    from acnn.registration import shape_statistics, transfer_shape
    from acnn.runs.evaluate import evaluate_run
    from acnn.runs.match import match, match_shape
    from acnn.runs.match_files import match_files
    from acnn.runs.register import register
    from acnn.runs.segment import segment_shape
    from acnn.runs.train import train_run
    from acnn.shapes import Mesh, PointCloud, describe, from_arrays, load, save
    from acnn.surface import surface_of
    from acnn.training import preset_config
    from acnn.training.prepared import cached_patches
    from acnn.viewer import render


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"acnn.{name}")
    if name in _DEPRECATED:
        module, present, instead = _DEPRECATED[name]
        warnings.warn(f"acnn.{name} is deprecated: use {instead}.", DeprecationWarning, stacklevel=2)
        return getattr(import_module(module), present)
    if name not in _WHERE:
        raise AttributeError(f"module 'acnn' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]
