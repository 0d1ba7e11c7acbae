"""A layer of one's own on patch operators, tested for what every layer of a network on shapes has to fulfil.

Before: acnn sample --out sample
"""

import numpy as np
import torch
from torch import nn

import acnn
from acnn.testing import assert_permutation_equivariant, assert_rigid_invariant
from acnn.viewer import grid, save_png


class GatedConv(nn.Module):
    """y = conv(x) * sigmoid(gate(x)): an intrinsic convolution whose channels open and close from vertex to vertex."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv, self.gate = acnn.nn.IntrinsicConv(channels, channels), acnn.nn.IntrinsicConv(channels, channels)

    def forward(self, x: torch.Tensor, patches: acnn.nn.Patches) -> torch.Tensor:
        """(n, channels) to (n, channels)."""
        return self.conv(x, patches) * torch.sigmoid(self.gate(x, patches))


torch.manual_seed(0)
layer = GatedConv(2)


def on_curvatures(shape: acnn.Mesh) -> torch.Tensor:
    """The layer on principal curvatures, which are invariant themselves."""
    patches = acnn.nn.Patches(acnn.build_patches(shape, angles=4, scales=(16, 64)))
    curvatures = acnn.principal_curvatures(shape.vertices, shape.faces)
    with torch.no_grad():
        return layer(torch.from_numpy(curvatures).float(), patches)


mesh = acnn.load("sample/shapes/human_00.ply")
print(f"rigid motion changes it by {assert_rigid_invariant(on_curvatures, mesh, tolerance=1e-2):.1e}")
print(f"permutation changes it by {assert_permutation_equivariant(on_curvatures, mesh, tolerance=1e-2):.1e}")
curvature, output = acnn.principal_curvatures(mesh.vertices, mesh.faces)[:, 0], on_curvatures(mesh)[:, 0].numpy()
images = [acnn.render(mesh, values=np.clip(x, *np.percentile(x, (3, 97)))) for x in (curvature, output)]
save_png(grid([images], [["input: larger curvature", "output of the layer"]]), "03_own_layer.png")
