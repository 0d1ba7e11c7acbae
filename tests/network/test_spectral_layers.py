"""Spectral layers: known answers on small shapes."""

import numpy as np
import pytest
import torch
from analytic import bumpy

from acnn.errors import InputError
from acnn.network import Operators, ShapeNetwork, SpectralConv, SpectralSettings, Spectrum, WindowedConv
from acnn.network.spectral import cubic_splines, response_basis, windowed_transform
from acnn.surface.laplacian import stiffness
from acnn.surface.surface import surface_of


def dense_spectrum(k=None, signs=None):
    """All eigenpairs of a small mesh, in double precision."""
    from scipy.linalg import eigh

    surface = surface_of(bumpy(1))
    areas = surface.vertex_areas
    values, functions = eigh(stiffness(surface).toarray(), np.diag(areas))
    values, functions = np.maximum(values, 0.0)[:k], functions[:, :k]
    if signs is not None:
        functions = functions * signs
    return Spectrum(*(torch.from_numpy(x.copy()) for x in (values, functions, areas)))


def test_splines_sum_to_one_and_are_local():
    position = torch.linspace(0, 1, 50, dtype=torch.float64)
    values = cubic_splines(position, 9)
    assert torch.allclose(values.sum(dim=1), torch.ones(50, dtype=torch.float64))
    assert (values >= 0).all()
    assert ((values > 0).sum(dim=1) <= 4).all()


def test_a_response_of_one_over_the_whole_spectrum_is_the_identity():
    spectrum = dense_spectrum()
    n = len(spectrum.areas)
    for settings in (SpectralSettings(n, 0), SpectralSettings(n, 9), SpectralSettings(n, 9, "eigenvalue", 1.0)):
        layer = SpectralConv(2, 2, settings, relu=False).double()
        with torch.no_grad():
            layer.weight.copy_(torch.eye(2, dtype=torch.float64).expand(settings.size, 2, 2))
        f = torch.randn(n, 2, dtype=torch.float64)
        assert torch.allclose(layer(f, spectrum), f, atol=1e-9)


def test_the_skip_adds_a_pointwise_map():
    spectrum = dense_spectrum(10)
    layer = SpectralConv(3, 2, SpectralSettings(10, 5, skip=True), relu=False).double()
    f = torch.randn(len(spectrum.areas), 3, dtype=torch.float64)
    whole = layer(f, spectrum)
    skip = layer.skip.detach().clone()
    with torch.no_grad():
        layer.skip.zero_()
    assert torch.allclose(whole, layer(f, spectrum) + f @ skip)


def test_the_windowed_transform_equals_its_definition_with_translated_windows():
    spectrum = dense_spectrum(12)
    phi, areas = spectrum.eigenfunctions, spectrum.areas
    f, window = torch.randn(len(areas), dtype=torch.float64), torch.rand(12, dtype=torch.float64)
    translated = (phi * window) @ phi.T  # (T_x g)(y) = sum_l g_l phi_l(x) phi_l(y)
    naive = torch.einsum("xy,y,yk->xk", translated, areas * f, phi) * areas.sum().sqrt()
    assert torch.allclose(windowed_transform(f, window, spectrum), naive, atol=1e-12)


def test_all_frequencies_give_the_function_times_an_eigenfunction():
    spectrum = dense_spectrum()
    n = len(spectrum.areas)
    f = torch.randn(n, dtype=torch.float64)
    found = windowed_transform(f, torch.ones(n, dtype=torch.float64), spectrum)
    assert torch.allclose(found, f[:, None] * spectrum.eigenfunctions * spectrum.areas.sum().sqrt(), atol=1e-8)


@pytest.mark.parametrize("layer", [SpectralConv, WindowedConv])
def test_signs_of_eigenfunctions_do_not_matter(layer):
    signs = np.random.default_rng(0).choice([-1.0, 1.0], 12)
    torch.manual_seed(0)
    conv = layer(2, 3, SpectralSettings(12, 6)).double()
    f = torch.randn(len(dense_spectrum().areas), 2, dtype=torch.float64)
    assert torch.allclose(conv(f, dense_spectrum(12)), conv(f, dense_spectrum(12, signs)), atol=1e-10)


@pytest.mark.parametrize("layer", [SpectralConv, WindowedConv])
def test_gradients(layer):
    spectrum = dense_spectrum(6)
    torch.manual_seed(0)
    conv = layer(2, 2, SpectralSettings(6, 5, skip=True), relu=False).double()
    f = torch.randn(len(spectrum.areas), 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: conv(x, spectrum)[:5], (f,))


def test_a_network_of_spectral_layers_says_what_it_uses_and_what_is_missing():
    model = ShapeNetwork("FC4+RES(SC4)+WC3+Softmax", 2, 5, spectral=SpectralSettings(8, 5))
    assert model.uses == ("spectrum",)
    spectrum = dense_spectrum(8)
    given = Operators(
        spectrum=Spectrum(*(x.float() for x in (spectrum.eigenvalues, spectrum.eigenfunctions, spectrum.areas)))
    )
    f = torch.randn(len(spectrum.areas), 2)
    rows = torch.tensor([3, 1])
    model.eval()
    assert torch.allclose(model(f, given)[rows], model(f, given, rows), atol=1e-5)
    with pytest.raises(InputError, match="needs the spectrum"):
        model(f, Operators())
    with pytest.raises(InputError, match="settings of the spectrum"):
        ShapeNetwork("SC4+Softmax", 2, 5)
    with pytest.raises(InputError, match="8 eigenpairs"):
        response_basis(SpectralSettings(8), torch.arange(5.0))


def test_a_network_without_a_head_gives_a_descriptor(tmp_path):
    from acnn.network import load_model, save_model

    model = ShapeNetwork("FC8+WC4:linear", 2, 0, spectral=SpectralSettings(8, 5)).eval()
    save_model(model, tmp_path / "model.safetensors", {"a": 1})
    again, metadata = load_model(tmp_path / "model.safetensors")
    assert metadata == {"a": 1}
    assert again.config == model.config
    with pytest.raises(InputError, match="no Softmax"):
        ShapeNetwork("FC8+Softmax", 2, 0)
