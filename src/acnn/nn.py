"""Layers for one's own PyTorch model, and the operators that they take: everything that `acnn.network` exports.

operator = acnn.nn.Patches(acnn.build_patches(mesh, angles=8, scales=(4, 16, 64)))
y = acnn.nn.IntrinsicConv(64, 64)(x, operator)  # (n, 64) to (n, 64)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acnn import network

if TYPE_CHECKING:
    from acnn.network import *  # noqa: F403

__all__ = list(network.__all__)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'acnn.nn' has no attribute {name!r}")
    return getattr(network, name)


def __dir__() -> list[str]:
    return sorted(__all__)
