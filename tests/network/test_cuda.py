"""On a GPU, layers and networks give what they give on the CPU. Nothing of this has run on one yet."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from network_samples import random_operator

from acnn.network import IntrinsicConv, Operators, Patches, ShapeNetwork, SpectralSettings, Spectrum

DEVICE = "cuda"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU with CUDA here")


def moved(patches: Patches) -> Patches:
    """Patches on the GPU, where they are sparse matrices of torch."""
    found = patches.to(DEVICE)
    assert found.device.type == DEVICE
    return found


@pytest.mark.parametrize("scales", [(3.0, 12.0), (200.0, 300.0), (3.0, 200.0, 12.0)])
@pytest.mark.parametrize("angular_max", [False, True])
def test_a_convolution_and_its_gradients(scales: tuple[float, ...], angular_max: bool) -> None:
    torch.manual_seed(0)
    patches = Patches(random_operator(n=50, scales=scales))
    layer = IntrinsicConv(6, 5, 4, len(scales), angular_max=angular_max)
    there = copy.deepcopy(layer).to(DEVICE)
    f = torch.randn(50, 6, requires_grad=True)
    g = f.detach().to(DEVICE).requires_grad_()
    expected, found = layer(f, patches), there(g, moved(patches))
    torch.testing.assert_close(found.cpu(), expected, atol=1e-4, rtol=1e-4)
    sought = torch.autograd.grad(expected.square().sum(), [f, *layer.parameters()])
    given = torch.autograd.grad(found.square().sum(), [g, *there.parameters()])
    for one, other in zip(given, sought, strict=True):
        torch.testing.assert_close(one.cpu(), other, atol=1e-3, rtol=1e-3)


def test_a_network_learns_as_on_the_cpu() -> None:
    torch.manual_seed(0)
    patches = Patches(random_operator(n=50))
    random = torch.Generator().manual_seed(1)
    values = torch.linspace(0.0, 0.1, 9), torch.randn(50, 9, generator=random), torch.rand(50, generator=random) + 0.5
    here = Operators(patches=patches, spectrum=Spectrum(*values))
    there = replace(here, patches=moved(patches), spectrum=Spectrum(*(value.to(DEVICE) for value in values)))
    model = ShapeNetwork("FC8+IC8+BN+SC6+WC4+FC12+Softmax", 6, 50, angles=4, scales=3, spectral=SpectralSettings(9, 5))
    copied = copy.deepcopy(model).to(DEVICE)
    f, labels = torch.randn(50, 6), torch.randperm(50)
    losses: dict[str, list[float]] = {}
    for name, network, operators, device in (("cpu", model, here, "cpu"), ("gpu", copied, there, DEVICE)):
        optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
        losses[name] = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(network(f.to(device), operators), labels.to(device))
            loss.backward()
            optimizer.step()
            losses[name].append(loss.item())
    assert losses["cpu"][-1] < losses["cpu"][0]
    assert losses["gpu"] == pytest.approx(losses["cpu"], rel=0.01)
