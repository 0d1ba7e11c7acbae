"""Network: layers, architectures as strings, models, saving and loading. Loads torch."""

from acnn.network.architecture import Architecture, LayerSpec
from acnn.network.intrinsic_conv import IntrinsicConv
from acnn.network.layers import FC, IC, BatchNorm, Dropout, Residual, reestimate_statistics
from acnn.network.model import AcnnModel
from acnn.network.output import Output
from acnn.network.patch_tensors import Patches
from acnn.network.saving import load_model, save_model

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
