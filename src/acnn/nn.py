"""Layers for one's own PyTorch model, and the operators that they take: `Patches`, `IntrinsicConv` and the rest.

operator = acnn.nn.Patches(acnn.build_patches(mesh, angles=8, scales=(4, 16, 64)))
y = acnn.nn.IntrinsicConv(64, 64)(x, operator)  # (n, 64) to (n, 64)
"""

from __future__ import annotations

from acnn.network.architecture import Architecture, LayerSpec
from acnn.network.conv import IntrinsicConv
from acnn.network.layers import FC, IC, BatchNorm, Dropout, Output, Residual, reestimate_statistics
from acnn.network.model import AcnnModel, load_model, save_model
from acnn.network.patches import Patches

__all__ = [
    "FC",
    "IC",
    "AcnnModel",
    "Architecture",
    "BatchNorm",
    "Dropout",
    "IntrinsicConv",
    "LayerSpec",
    "Output",
    "Patches",
    "Residual",
    "load_model",
    "reestimate_statistics",
    "save_model",
]
