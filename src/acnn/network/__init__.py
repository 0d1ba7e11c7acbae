"""Network: layers, architectures as strings, models, saving and loading. Loads torch when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acnn.network.architecture import Architecture, LayerSpec, SpectralSettings
    from acnn.network.conv import IntrinsicConv
    from acnn.network.layers import FC, IC, BatchNorm, Dropout, Output, Residual, reestimate_statistics
    from acnn.network.model import ShapeNetwork, load_model, save_model
    from acnn.network.patches import Operators, Patches, Spectrum
    from acnn.network.spectral import SpectralConv, WindowedConv

_WHERE = {
    "Architecture": "architecture",
    "BatchNorm": "layers",
    "Dropout": "layers",
    "FC": "layers",
    "IC": "layers",
    "IntrinsicConv": "conv",
    "LayerSpec": "architecture",
    "Operators": "patches",
    "Output": "layers",
    "Patches": "patches",
    "Residual": "layers",
    "ShapeNetwork": "model",
    "SpectralConv": "spectral",
    "SpectralSettings": "architecture",
    "Spectrum": "patches",
    "WindowedConv": "spectral",
    "load_model": "model",
    "reestimate_statistics": "layers",
    "save_model": "model",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'acnn.network' has no attribute {name!r}")
    return getattr(import_module(f"acnn.network.{_WHERE[name]}"), name)
