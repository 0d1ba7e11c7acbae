from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch
from analytic import bumpy
from network_samples import random_operator

from acnn.errors import InputError
from acnn.network import IntrinsicConv, Patches
from acnn.patches.anisotropic import build_patches
from acnn.patches.operator import PatchOperator
from acnn.shapes.mesh import Mesh
from acnn.testing import assert_permutation_equivariant, assert_rigid_invariant
from acnn.training.cache_entries import read_patches, write_patches

SCALES = {"narrow": (3.0, 12.0), "wide": (200.0, 300.0), "both": (3.0, 200.0, 12.0)}


def reference(layer: IntrinsicConv, operator: PatchOperator, f: np.ndarray) -> np.ndarray:
    """The layer by its formula, from all patches at once."""
    patches = operator.apply(f)  # (n, angles, scales, p)
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    turned = [np.roll(weight, turn, axis=0) for turn in range(layer.angles if layer.angular_max else 1)]
    return np.max([np.einsum("natp,atpq->nq", patches, filters) for filters in turned], axis=0) + bias


@pytest.mark.parametrize("angular_max", [False, True])
def test_equals_the_formula_on_a_surface(operator: PatchOperator, angular_max: bool) -> None:
    torch.manual_seed(0)
    f = np.random.default_rng(1).normal(size=(operator.n, 5)).astype(np.float32)
    layer = IntrinsicConv(5, 7, 4, 3, angular_max=angular_max)
    torch.nn.init.normal_(layer.bias)
    found = layer(torch.from_numpy(f), Patches(operator)).detach().numpy()
    np.testing.assert_allclose(found, reference(layer, operator, f), atol=2e-5)


@pytest.mark.parametrize("p", [1, 8, 31, 140])
@pytest.mark.parametrize("q", [1, 12, 33, 100])
def test_equals_the_formula_at_every_width(p: int, q: int) -> None:
    operator = random_operator(n=23)
    f = np.random.default_rng(p).normal(size=(23, p)).astype(np.float32)
    layer = IntrinsicConv(p, q, 4, 3)
    expected = reference(layer, operator, f)
    found = layer(torch.from_numpy(f), Patches(operator)).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=2e-6 * np.abs(expected).max() * p**0.5)


def test_identity_patches_make_a_linear_layer() -> None:
    n, angles = 9, 3
    rows = angles * 2 * n
    operator = replace(
        random_operator(n, angles, (3.0, 12.0)),
        start=np.arange(rows + 1),
        vertices=np.tile(np.arange(n), angles * 2).astype(np.uint16),
        values=np.ones(rows, np.float16),
    )
    layer = IntrinsicConv(4, 6, angles, 2)
    f = torch.randn(n, 4)
    expected = f @ layer.weight.sum((0, 1)) + layer.bias
    torch.testing.assert_close(layer(f, Patches(operator)), expected)


@pytest.mark.parametrize("angular_max", [False, True])
def test_moving_or_permuting_a_mesh_does_not_change_the_layer(angular_max: bool) -> None:
    torch.manual_seed(0)
    layer = IntrinsicConv(3, 6, angular_max=angular_max)

    def convolved(mesh: Mesh) -> torch.Tensor:
        operator = build_patches(mesh, angles=4, scales=(30, 5000), eigenpairs=40, threads=1)
        assert operator.wide == (1,)
        f = np.linalg.norm(mesh.vertices - operator.vertex_areas @ mesh.vertices / operator.vertex_areas.sum(), axis=1)
        f = f / f.mean()
        return layer(torch.from_numpy(np.stack([f, f**2, np.cos(4 * f)], axis=1)), Patches(operator))

    assert_rigid_invariant(convolved, bumpy(2), tolerance=2e-3, scale=0.1)
    assert_permutation_equivariant(convolved, bumpy(2), tolerance=2e-3)


def test_sizes_left_open_are_those_of_the_first_operator() -> None:
    torch.manual_seed(0)
    layer = IntrinsicConv(3, 5)
    assert repr(layer) == "IntrinsicConv(3, 5, angles=None, scales=None, bias=True, angular_max=False)"
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    patches, f = Patches(random_operator()), torch.randn(13, 3)
    y = layer(f, patches)
    assert (layer.angles, layer.scales) == (4, 3)
    assert layer.weight.shape == (4, 3, 3, 5)
    assert 0.8 < float(layer.weight.detach().std() / (2 / (4 * 3 * 3)) ** 0.5) < 1.2
    np.testing.assert_allclose(y.detach().numpy(), reference(layer, random_operator(), f.numpy()), atol=2e-5)
    y.square().sum().backward()
    optimizer.step()
    assert layer(f, patches).square().sum() < y.square().sum()
    with pytest.raises(InputError, match="4 angles x 3 scales"):
        layer(f, Patches(random_operator(angles=5)))


def test_open_sizes_keep_type_copies_and_one_given_size() -> None:
    layer = copy.deepcopy(IntrinsicConv(3, 5, scales=3).double())
    f = torch.randn(13, 3, dtype=torch.float64)
    with pytest.raises(InputError, match="any number of angles x 3 scales, but the patches have 4 x 2"):
        layer(f, Patches(random_operator(scales=(3.0, 12.0))))
    layer(f, Patches(random_operator()))
    assert layer.weight.dtype == torch.float64
    assert layer.angles == 4


def test_weights_are_loaded_into_open_sizes() -> None:
    patches, f = Patches(random_operator()), torch.randn(13, 3)
    trained = IntrinsicConv(3, 5, 4, 3)
    torch.nn.init.normal_(trained.bias)
    for assign in (False, True):
        fresh = torch.nn.Sequential(IntrinsicConv(3, 5))
        fresh.load_state_dict({f"0.{name}": value for name, value in trained.state_dict().items()}, assign=assign)
        assert (fresh[0].angles, fresh[0].scales) == (4, 3)
        assert torch.equal(fresh[0](f, patches), trained(f, patches))
    other = IntrinsicConv(3, 5)
    other.load_state_dict(IntrinsicConv(3, 5).state_dict())  # neither has sizes
    assert other.angles is None
    with pytest.raises(RuntimeError, match="weight"):
        IntrinsicConv(4, 5).load_state_dict(trained.state_dict())
    kept = IntrinsicConv(3, 5)
    kept.load_state_dict({"bias": trained.bias.detach()}, strict=False)
    kept(f, patches)
    assert torch.equal(kept.bias, trained.bias)


def test_the_old_form_of_patches_is_the_same() -> None:
    operator = random_operator()
    one, other = Patches(operator), Patches.of(operator)
    assert repr(one) == repr(other) == "Patches(13 vertices, 4 angles, 3 scales, cpu)"
    f, layer = torch.randn(13, 3), IntrinsicConv(3, 5)
    assert torch.equal(layer(f, one), layer(f, other))
    with pytest.raises(FrozenInstanceError):
        one.n = 3


def test_angular_maximum_does_not_depend_on_the_first_angle() -> None:
    operator = random_operator(angles=5)
    n, blocks = operator.n, 2
    ends = operator.start[:: n * blocks]
    order = [3, 4, 0, 1, 2]
    turned = replace(
        operator,
        start=np.concatenate(
            [[0], np.cumsum(np.concatenate([np.diff(operator.start).reshape(5, -1)[a] for a in order]))]
        ),
        vertices=np.concatenate([operator.vertices[ends[a] : ends[a + 1]] for a in order]),
        values=np.concatenate([operator.values[ends[a] : ends[a + 1]] for a in order]),
        eigenvalues=operator.eigenvalues[order],
        eigenfunctions=operator.eigenfunctions[order],
    )
    f = torch.randn(n, 3)
    layer = IntrinsicConv(3, 4, 5, 3, angular_max=True)
    expected = layer(f, Patches(operator))
    torch.testing.assert_close(layer(f, Patches(turned)), expected, atol=2e-5, rtol=1e-5)
    layer.angular_max = False
    assert not torch.allclose(layer(f, Patches(turned)), layer(f, Patches(operator)), atol=1e-2)


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("angular_max", [False, True])
@pytest.mark.parametrize("matrices", [False, True])
def test_gradients(scales: str, angular_max: bool, matrices: bool) -> None:
    torch.manual_seed(0)
    patches = Patches(random_operator(scales=SCALES[scales]))
    patches = patches.as_matrices() if matrices else patches
    layer = IntrinsicConv(3, 4, 4, len(SCALES[scales]), angular_max=angular_max).double()
    f = torch.randn(13, 3, dtype=torch.float64, requires_grad=True)

    def convolved(f: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (f, patches))

    assert torch.autograd.gradcheck(convolved, (f, layer.weight, layer.bias))


def test_gradients_of_many_channels() -> None:
    patches = Patches(random_operator(n=300, angles=3, scales=(3.0, 12.0)))
    matrices = patches.as_matrices()
    for p, q in ((70, 20), (20, 70)):
        layer = IntrinsicConv(p, q, 3, 2).double()
        f = torch.randn(300, p, dtype=torch.float64, requires_grad=True)
        sought = [f, layer.weight]
        found = torch.autograd.grad(layer(f, patches).square().sum(), sought)
        expected = torch.autograd.grad(layer(f, matrices).square().sum(), sought)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)
        only = torch.autograd.grad(layer(f.detach(), patches).square().sum(), layer.weight)[0]
        torch.testing.assert_close(only, expected[1])
        layer.weight.requires_grad_(False)  # as in a layer that is not trained further
        torch.testing.assert_close(torch.autograd.grad(layer(f, patches).square().sum(), f)[0], expected[0])


def test_angular_maximum_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    patches = Patches(random_operator())
    layer = IntrinsicConv(3, 4, 4, 3, angular_max=True).double()
    f = torch.randn(13, 3, dtype=torch.float64, requires_grad=True)
    whole = torch.autograd.grad(layer(f, patches).square().sum(), [f, layer.weight])
    monkeypatch.setattr("acnn.network.conv._CHUNK", 5 * 4 * 3 * 3)
    parts = torch.autograd.grad(layer(f, patches).square().sum(), [f, layer.weight])
    for one, other in zip(parts, whole, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("angular_max", [False, True])
def test_bf16_is_close_to_float32(operator: PatchOperator, angular_max: bool) -> None:
    torch.manual_seed(0)
    layer = IntrinsicConv(16, 16, 4, 3, angular_max=angular_max)
    f = torch.randn(operator.n, 16).bfloat16()
    exact = layer(f.float(), Patches(operator))
    rounded = layer(f, Patches(operator))
    assert rounded.dtype == torch.bfloat16
    assert torch.equal(rounded, exact.bfloat16())  # sums in float32: only the result is rounded
    rounded.float().sum().backward()
    assert layer.weight.grad.dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        again = layer(f, Patches(operator))
        assert torch.equal(again, rounded)
        inside = torch.autograd.grad(again.float().sum(), layer.weight)[0]
    assert (inside - layer.weight.grad).abs().max() < 0.02 * layer.weight.grad.abs().max()


def test_stored_weights_are_decoded_exactly() -> None:
    """Every finite float16, subnormal and negative ones too, comes out of the product as itself."""
    bits = np.arange(65536, dtype=np.uint16)
    values = bits.view(np.float16)
    values = values[np.isfinite(values)]
    n = len(values)
    operator = replace(
        random_operator(2, 1, (3.0,)),
        start=np.arange(n + 1),
        vertices=np.zeros(n, np.uint16),
        values=values,
        eigenfunctions=np.zeros((1, n, 0), np.float32),
        vertex_areas=np.ones(n, np.float32),
    )
    layer = IntrinsicConv(1, 1, 1, 1, bias=False)
    torch.nn.init.ones_(layer.weight)
    found = layer(torch.ones(n, 1), Patches(operator)).detach().numpy()[:, 0]
    np.testing.assert_array_equal(found, values.astype(np.float32))


def test_wide_vertex_numbers() -> None:
    narrow = random_operator(scales=(3.0, 12.0))
    f = torch.randn(13, 5)
    layer = IntrinsicConv(5, 6, 4, 2)
    expected = layer(f, Patches(narrow))
    assert torch.equal(layer(f, Patches(replace(narrow, vertices=narrow.vertices.astype(np.int32)))), expected)


def test_no_bit_depends_on_threads() -> None:
    patches = Patches(random_operator(n=200, scales=(3.0, 6.0, 12.0)))
    torch.manual_seed(0)
    layer = IntrinsicConv(40, 70, 4, 3)
    f = torch.randn(200, 40, requires_grad=True)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            y = layer(f, patches)
            found.append([y, *torch.autograd.grad((y * torch.arange(70)).sum(), [f, layer.weight])])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_takes_a_memory_mapped_operator(operator: PatchOperator, tmp_path) -> None:
    path = tmp_path / "patches.safetensors"
    write_patches(operator, path)
    mapped = read_patches(path)
    patches = Patches(mapped)
    assert np.shares_memory(patches.rows.values, mapped.values)
    layer = IntrinsicConv(5, 7, 4, 3)
    f = torch.randn(operator.n, 5)
    assert torch.equal(layer(f, patches), layer(f, Patches(operator)))


def test_moving_to_the_same_device_changes_nothing() -> None:
    patches = Patches(random_operator())
    assert patches.to("cpu") is patches


def test_wrong_inputs_are_named() -> None:
    operator = random_operator()
    patches = Patches(operator)
    layer = IntrinsicConv(3, 4, 4, 3)
    with pytest.raises(InputError, match=r"\(n, 3\)"):
        layer(torch.zeros(13, 5), patches)
    with pytest.raises(InputError, match=r"torch\.int64.*\.float\(\)"):  # the result would be cut to whole numbers
        layer(torch.ones(13, 3, dtype=torch.int64), patches)
    with pytest.raises(InputError, match="12 rows"):
        layer(torch.zeros(12, 3), patches)
    with pytest.raises(InputError, match="4 angles x 3 scales"):
        layer(torch.zeros(13, 3), Patches(random_operator(angles=5)))
    with pytest.raises(InputError, match="at least 1"):
        IntrinsicConv(0, 4, 4, 3)
    wrong = operator.vertices.copy()
    wrong[5] = 13
    with pytest.raises(InputError, match="vertices that its shape of 13"):
        Patches(replace(operator, vertices=wrong))
    with pytest.raises(InputError, match="do not fit together"):
        Patches(replace(operator, values=operator.values[:-1]))


def test_prints_itself() -> None:
    assert repr(IntrinsicConv(3, 4, 16, 5)) == (
        "IntrinsicConv(3, 4, angles=16, scales=5, bias=True, angular_max=False)"
    )
