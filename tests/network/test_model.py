from __future__ import annotations

import hashlib
import json
import os
import re

import numpy as np
import pytest
import torch
from network_samples import random_operator

from acnn.errors import InputError
from acnn.files import write_arrays
from acnn.network import (
    FC,
    IC,
    BatchNorm,
    IntrinsicConv,
    Patches,
    Residual,
    ShapeNetwork,
    load_model,
    reestimate_statistics,
    save_model,
)
from acnn.network.model import start_from

DEEP = "FC8+IC8+BN+RES(IC12)+DO(0.25)+FC16:linear+BN+FC10+Softmax"


@pytest.fixture
def patches() -> Patches:
    return Patches.of(random_operator(n=30))


def model_of(architecture: str = DEEP, **options: bool) -> ShapeNetwork:
    torch.manual_seed(5)
    return ShapeNetwork(architecture, 6, 17, 4, 3, **options)


def test_a_larger_network_starts_as_the_one_it_grows_from(patches: Patches) -> None:
    small = model_of("FC8+RES(IC8)+FC10+Softmax").eval()
    with torch.no_grad():
        small.layers[1].norm.weight.uniform_(0.5, 1.5)
    torch.manual_seed(7)
    large = ShapeNetwork("FC8+RES(IC8)+RES(IC8)+RES(IC8)+FC10+Softmax", 6, 17, 4, 3).eval()
    large.classifier.share_weights(torch.randn(17, 3))
    f = torch.randn(30, 6)
    assert not torch.allclose(large(f, patches), small(f, patches))
    start_from(large, small)
    torch.testing.assert_close(large(f, patches), small(f, patches))
    for other in ("FC8+RES(IC8)+IC8+FC10+Softmax", "FC8+RES(IC9)+RES(IC8)+FC10+Softmax", "FC8+FC10+Softmax"):
        with pytest.raises(InputError, match="cannot start from"):
            start_from(model_of(other), small)


def test_layers_stand_where_the_paper_has_them() -> None:
    model = model_of("FC64+IC64+BN+FC1024:linear+BN+DO(0.5)+FC512+Softmax")
    kinds = [type(layer).__name__ for layer in model.layers]
    assert kinds == ["FC", "IC", "BatchNorm", "FC", "BatchNorm", "Dropout", "FC"]
    assert [layer.relu for layer in model.layers if isinstance(layer, FC | IC)] == [True, True, False, True]
    assert model.layers[3].bias is None
    assert model_of("RES(IC8:linear)+Softmax").layers[0].body[0].bias is None
    assert model.layers[1].bias is not None
    assert (model.classifier.in_features, model.classifier.out_features, model.classifier.relu) == (512, 17, False)


def test_output_is_logits(patches: Patches) -> None:
    model = model_of("FC8+IC8+Softmax")
    f = torch.randn(30, 6)
    first, second = model.layers
    hidden = torch.relu(f @ first.weight.T + first.bias)
    hidden = torch.relu(IntrinsicConv.forward(second, hidden, patches))
    torch.testing.assert_close(model.features(f, patches), hidden)
    torch.testing.assert_close(model(f, patches), hidden @ model.classifier.weight.T + model.classifier.bias)


@pytest.mark.parametrize("architecture", [DEEP, "FC8+IC8+Softmax", "FC8+FC9+Softmax", "RES(IC6)+Softmax", "Softmax"])
def test_chosen_rows_equal_rows_of_the_whole(architecture: str, patches: Patches) -> None:
    model = model_of(architecture).eval()
    f, rows = torch.randn(30, 6), torch.tensor([4, 29, 0, 4])
    torch.testing.assert_close(model(f, patches, rows=rows), model(f, patches)[rows])
    torch.testing.assert_close(model.features(f, patches, rows), model.features(f, patches)[rows])


def test_residual_block_adds_a_normalised_correction(patches: Patches) -> None:
    torch.manual_seed(0)
    f = torch.randn(30, 6)
    block = Residual([IC(6, 6, 4, 3)], 6, 6)
    correction = block(f, patches) - f
    torch.testing.assert_close(correction.mean(0), torch.zeros(6), atol=1e-5, rtol=0)
    torch.testing.assert_close(correction.std(0, correction=0), torch.ones(6), atol=1e-2, rtol=0)
    torch.nn.init.zeros_(block.norm.weight)
    torch.testing.assert_close(block(f, patches), f)


def test_batch_normalisation_keeps_or_takes_statistics() -> None:
    torch.manual_seed(0)
    layer = BatchNorm(3)
    for _ in range(200):
        layer(torch.randn(500, 3) * 2 + 5)
    layer.eval()
    query = torch.randn(500, 3) * 4 - 1
    torch.testing.assert_close(layer(query), (query - 5) / 2, atol=0.2, rtol=0.1)
    kept = layer.running_mean.clone()
    reestimate_statistics(torch.nn.Sequential(layer))
    own = (query - query.mean(0)) / query.std(0, correction=0)
    torch.testing.assert_close(layer(query), own, atol=1e-4, rtol=1e-4)
    assert torch.equal(layer.running_mean, kept)
    reestimate_statistics(layer, False)
    torch.testing.assert_close(layer(query), (query - 5) / 2, atol=0.2, rtol=0.1)
    with pytest.raises(InputError, match="at least 2"):
        layer.train()(query[:1])


def test_input_is_standardised(patches: Patches) -> None:
    model = model_of().eval()
    f = torch.randn(30, 6)
    expected = model(f, patches)
    scale = torch.tensor([1.0, 10.0, 0.01, 3.0, 0.0, 1.0])
    where = torch.arange(6.0)
    model.standardise_input(where, scale)
    given = f * torch.where(scale > 0, scale, 1.0) + where
    torch.testing.assert_close(model(given, patches), expected, atol=1e-4, rtol=1e-4)
    with pytest.raises(InputError, match="6 features"):
        model.standardise_input(torch.zeros(5), torch.ones(5))
    with pytest.raises(InputError, match=r"\(n, 6\)"):
        model(torch.zeros(30, 7), patches)


def test_bf16_autocast_is_close(patches: Patches) -> None:
    model = model_of().eval()
    f = torch.randn(30, 6)
    exact = model(f, patches)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model(f, patches)
    assert rounded.dtype == torch.bfloat16
    assert (rounded.float() - exact).abs().max() < 0.05 * exact.abs().max()


@pytest.mark.parametrize("angular_max", [False, True])
def test_training_repeats_to_the_bit(patches: Patches, angular_max: bool) -> None:
    def trained() -> bytes:
        model = model_of(angular_max=angular_max)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        f = torch.randn(30, 6)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            rows = torch.randperm(30)[:20]
            loss = torch.nn.functional.cross_entropy(model(f, patches, rows), rows % 17)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
        return b"".join(tensor.numpy().tobytes() for tensor in model.state_dict().values())

    assert trained() == trained()


def test_models_come_back_from_files(patches: Patches, tmp_path) -> None:
    model = model_of(angular_max=True)
    f = torch.randn(30, 6)
    model(f, patches)  # running averages
    model.standardise_input(torch.randn(6), torch.rand(6))
    path = tmp_path / "model.safetensors"
    metadata = {"reference": "a", "scales": [3.0, 6.0], "unit": None}
    save_model(model, path, metadata)
    loaded, found = load_model(path)
    assert found == metadata
    assert loaded.config == model.config
    assert not loaded.training
    assert torch.equal(loaded(f, patches), model.eval()(f, patches))
    assert os.listdir(tmp_path) == ["model.safetensors"]
    loaded.train()(f, patches).sum().backward()
    before = path.read_bytes()
    save_model(load_model(path)[0], path, metadata)
    assert path.read_bytes() == before


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.safetensors"
    save_model(model_of(), path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="JSON"):
        save_model(model_of(), path, {"array": np.zeros(3)})

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_model(model_of("FC4+Softmax"), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_damaged_files_are_noticed(tmp_path) -> None:
    path = tmp_path / "model.safetensors"
    save_model(model_of("FC4+IC3+BN+Softmax"), path, {"a": 1})
    data = path.read_bytes()
    random = np.random.default_rng(0)
    for trial in range(120):
        broken = bytearray(data)
        if trial % 3 == 0:
            broken = broken[: random.integers(len(data))]
        else:
            within = len(data) if trial % 3 == 1 else 700  # the header is short: look there as often
            broken[random.integers(within)] ^= 1 << random.integers(8)
        path.write_bytes(broken)
        with pytest.raises(InputError, match=re.escape(str(path))):
            load_model(path)


def test_other_files_are_refused(tmp_path) -> None:
    from safetensors.torch import save_file

    path = tmp_path / "other.safetensors"
    with pytest.raises(InputError, match="no such model"):
        load_model(path)
    save_file({"a": torch.zeros(3)}, path)
    with pytest.raises(InputError, match="acnn did not write it"):
        load_model(path)
    write_arrays(path, {"a": np.zeros(3)})
    with pytest.raises(InputError, match="not a model"):
        load_model(path)
    write_arrays(path, {"a": np.zeros(3)}, {"format": "acnn-model-9"})
    with pytest.raises(InputError, match="acnn-model-9"):
        load_model(path)


def test_format_1_is_still_read(patches: Patches, tmp_path) -> None:
    from safetensors.torch import save_file

    model, path = model_of(), tmp_path / "old.safetensors"
    tensors = {name: tensor.clone() for name, tensor in model.plain_state().items()}
    about = json.dumps({"config": model.config, "metadata": {"a": 1}})
    digest = hashlib.blake2b(about.encode(), digest_size=16)
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)};".encode())
        digest.update(tensors[name].numpy().tobytes())
    header = {"format": "acnn-model-1", "about": about, "checksum": digest.hexdigest()}
    save_file(tensors, path, {"acnn": json.dumps(header)})
    loaded, metadata = load_model(path)
    assert metadata == {"a": 1}
    f = torch.randn(30, 6)
    assert torch.equal(loaded(f, patches), model.eval()(f, patches))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="checksum"):
        load_model(path)


def test_architecture_and_sizes_are_checked() -> None:
    with pytest.raises(InputError, match="position 6"):
        ShapeNetwork("FC64+IB64+Softmax", 6, 17, 4, 3)
    with pytest.raises(InputError, match="at least 1"):
        ShapeNetwork("FC64+Softmax", 0, 17, 4, 3)
