"""Network: layers, architectures as strings, models, saving and loading. Loads torch."""

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
