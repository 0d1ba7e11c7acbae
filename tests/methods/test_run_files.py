"""Files of a run with any key missing, any value of another kind: opened, or an InputError that names the file."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from analytic import bumpy
from safetensors.numpy import save_file

from acnn.datasets.dataset import Dataset
from acnn.errors import InputError
from acnn.files import map_arrays, read_arrays, write_arrays
from acnn.methods.run import RunRecord, open_run, write_run
from acnn.network import Patches, ShapeNetwork, load_model, save_model
from acnn.patches import PatchSettings, build_patches
from acnn.training.cache_entries import read_patches, write_patches
from acnn.training.checkpoint import Progress, check_settings, read_checkpoint, write_checkpoint
from acnn.training.config import RunConfig, read_config
from acnn.training.log import Log, read_log, training_curve

WRONG = [None, True, -1, 10**30, 1.5, float("nan"), "x", [], [0], {}, {"a": 1}]
MESH = bumpy(1)
N = len(MESH.vertices)
CONFIG = RunConfig(patches=PatchSettings(angles=2, scales=(20.0, 40.0)))


def altered(value: Any) -> Iterator[Any]:
    """The value with each of its parts, at any depth, left out or replaced by something of another kind."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else [])
    for number, (key, inner) in enumerate(items):
        without = copy.copy(value)
        del without[key]
        yield without
        for wrong in (WRONG[number % len(WRONG)], WRONG[(3 * number + 4) % len(WRONG)], WRONG[(5 * number + 7) % 11]):
            other = copy.copy(value)
            other[key] = wrong
            yield other
        for changed in altered(inner):
            other = copy.copy(value)
            other[key] = changed
            yield other


def outcomes(variants: Iterator[Any], write: Callable[[Any], None], read: Callable[[], object]) -> list[str]:
    """The messages of those variants that are refused; the others must be read."""
    messages = []
    for variant in variants:
        write(variant)
        try:
            read()
        except InputError as error:
            messages.append(str(error))
    return messages


def small_model() -> ShapeNetwork:
    torch.manual_seed(0)
    return ShapeNetwork("FC4+IC4+BN+FC8+Softmax", 3, N, 2, 2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    facts = {"data": "here", "train": ["a"], "validation": [], "unit": 0.5, "content": {"train": ["f0"]}, "step": 3}
    write_run(tmp_path, Dataset("data", MESH, (), np.arange(N)[::-1].copy()), CONFIG, RunRecord(**facts))
    save_model(small_model(), tmp_path / "model.safetensors", {"config": CONFIG.as_dict(), "data": "here"})
    assert open_run(tmp_path).record.as_dict() == facts
    return tmp_path


def test_facts_of_a_run(folder: Path) -> None:
    path = folder / "run.json"
    facts = json.loads(path.read_text())
    messages = outcomes(altered(facts), lambda other: path.write_text(json.dumps(other)), lambda: open_run(folder))
    assert len(messages) > 15
    assert all("run.json: '" in message for message in messages)
    for other in (None, 1, "x", [], [facts]):
        path.write_text(json.dumps(other))
        with pytest.raises(InputError, match=r"run\.json"):
            open_run(folder)


def test_metadata_of_a_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, model = folder / "model.safetensors", small_model()
    about = {"config": CONFIG.as_dict(), "data": "here"}
    messages = outcomes(
        (other for other in altered(about) if _writable(other)),
        lambda other: save_model(model, path, other),
        lambda: open_run(folder),
    )
    assert len(messages) > 100
    config = model.config

    def write(other: Any) -> None:
        monkeypatch.setattr(ShapeNetwork, "config", other)
        save_model(model, path, about)
        monkeypatch.setattr(ShapeNetwork, "config", property(lambda model: config))

    more = outcomes((c for c in (*altered(config), *WRONG) if _writable(c)), write, lambda: load_model(path))
    assert len(more) > 20
    assert [message for message in messages + more if "model.safetensors: " not in message] == []


def _writable(value: Any) -> bool:
    """Whether a model's file can hold it: NaN is no JSON."""
    return "NaN" not in json.dumps(value)


def test_the_header_of_a_model(folder: Path) -> None:
    from safetensors import safe_open
    from safetensors.torch import save_file as save_tensors

    path = folder / "model.safetensors"
    with safe_open(str(path), framework="pt") as file:
        header = json.loads(file.metadata()["acnn"])
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118

    def write(other: Any) -> None:
        save_tensors(tensors, path, metadata={"acnn": json.dumps(other)})

    variants = [*altered(header), *WRONG]
    messages = outcomes(iter(variants), write, lambda: open_run(folder))
    assert len(messages) == len(variants)
    assert all("model.safetensors: " in message for message in messages)


def test_tensors_of_another_type_are_converted_or_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, model = folder / "model.safetensors", small_model()
    about = {"config": CONFIG.as_dict()}
    state = model.plain_state()
    patches = Patches.of(build_patches(MESH, CONFIG.patches))
    descriptors = torch.randn(N, 3)
    wanted = open_run(folder).model(descriptors, patches)
    for kind, tolerance in ((torch.float64, 1e-6), (torch.float16, 0.05), (torch.bfloat16, 0.3)):
        other = {name: t.to(kind) if t.is_floating_point() else t for name, t in state.items()}
        monkeypatch.setattr(ShapeNetwork, "plain_state", lambda model, other=other: other)
        save_model(model, path, about)
        found = open_run(folder).model(descriptors, patches)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, wanted, rtol=0, atol=tolerance)
    name = "layers.1.weight"
    for wrong, words in [
        (state[name].to(torch.int32), "holds torch.int32"),
        (state[name][:1], "of shape"),
        (state[name] * torch.nan, "not finite"),
    ]:
        monkeypatch.setattr(ShapeNetwork, "plain_state", lambda model, wrong=wrong: state | {name: wrong})
        save_model(model, path, about)
        with pytest.raises(InputError, match=rf"model\.safetensors: 'layers\.1\.weight' .*{words}"):
            open_run(folder)
    for changed, words in (({**state, "more": torch.ones(1)}, "has 'more'"), ({}, "lacks 'classifier")):
        monkeypatch.setattr(ShapeNetwork, "plain_state", lambda model, changed=changed: changed)
        save_model(model, path, about)
        with pytest.raises(InputError, match=rf"model\.safetensors: {words}"):
            open_run(folder)


def test_the_reference_of_a_run(folder: Path) -> None:
    path = folder / "reference.safetensors"
    sound = read_arrays(path)[0]
    for name, wrong in [
        *((name, None) for name in ("vertices", "faces")),
        ("vertices", sound["vertices"][:, :2]),
        ("vertices", sound["vertices"][:-1]),
        ("vertices", sound["vertices"] * np.nan),
        ("vertices", np.zeros((0, 3))),
        ("faces", sound["faces"].astype(float)),
        ("faces", sound["faces"] + 1),
        ("faces", sound["faces"].ravel()),
        ("mirror", sound["mirror"][1:]),
        ("mirror", sound["mirror"].astype(float)),
        ("mirror", sound["mirror"] + 1),
    ]:
        arrays = {key: value for key, value in (sound | {name: wrong}).items() if value is not None}
        write_arrays(path, arrays)
        with pytest.raises(InputError, match=r"reference\.safetensors: "):
            open_run(folder)
    bigger = {"vertices": np.vstack([sound["vertices"]] * 2), "faces": sound["faces"]}
    write_arrays(path, bigger)
    with pytest.raises(InputError, match=rf"has {2 * N} vertices, but the network labels {N}"):
        open_run(folder)


def test_metadata_of_array_files(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    arrays = {"a": np.ones(3), "b": np.arange(4, dtype=np.int32)}
    write_arrays(path, arrays, {"known": 1})
    header = {"about": json.dumps({"known": 1}), "checksum": _metadata(path)["checksum"]}
    for read in (read_arrays, map_arrays):
        messages = outcomes(
            iter([*altered(header), *WRONG]),
            lambda other: save_file(arrays, path, metadata={"acnn": json.dumps(other)}),
            lambda read=read: read(path),
        )
        assert len(messages) > 12
        assert all("a.safetensors: not a valid file" in message for message in messages)
        for metadata in (None, {}, {"acnn": "{"}, {"acnn": "[" * 10**5}, {"other": "{}"}):
            save_file(arrays, path, metadata=metadata)
            with pytest.raises(InputError, match=r"a\.safetensors: not a valid file"):
                read(path)


def _metadata(path: Path) -> dict[str, Any]:
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()["acnn"])


def test_headers_of_mapped_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_arrays(path, {"a": np.ones(3)}, {"known": 1})
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]

    def write(other: Any) -> None:
        text = json.dumps(other).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + body)

    variants = [*altered(header), *WRONG, {**header, "a": {"dtype": "F64", "shape": [3], "data_offsets": [1e400, 2]}}]
    for read in (lambda: map_arrays(path), lambda: read_arrays(path)):
        messages = outcomes(iter(variants), write, read)
        assert len(messages) > 30
        assert all("a.safetensors: not a valid file" in message for message in messages)


def test_metadata_of_a_patch_operator(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_patches(build_patches(MESH, CONFIG.patches), path)
    arrays, about = read_arrays(path)
    about["facts"] = {"kept": 1}
    messages = outcomes(altered(about), lambda other: write_arrays(path, arrays, other), lambda: read_patches(path))
    assert len(messages) > 25
    assert all("a.safetensors: " in message for message in messages)


@pytest.fixture
def checkpoint(tmp_path: Path) -> tuple[Path, ShapeNetwork, torch.optim.Optimizer]:
    model = small_model()
    optimiser = torch.optim.AdamW(model.parameters())
    operator = build_patches(MESH, CONFIG.patches)
    model(torch.randn(N, 3), Patches.of(operator)).square().mean().backward()
    optimiser.step()
    write_checkpoint(tmp_path / "checkpoint.safetensors", model, optimiser, Progress(step=1), CONFIG.as_dict())
    return tmp_path / "checkpoint.safetensors", model, optimiser


def test_metadata_of_a_checkpoint(checkpoint: tuple[Path, ShapeNetwork, torch.optim.Optimizer]) -> None:
    path, model, optimiser = checkpoint
    arrays, header = read_arrays(path)
    about = json.loads(header["checkpoint"])

    def read() -> None:
        check_settings(path, CONFIG.as_dict())
        read_checkpoint(path, model, optimiser, CONFIG.as_dict())

    read()
    for variants, write in [
        (altered(header), lambda other: write_arrays(path, arrays, other)),
        (
            [*altered(about), *WRONG],
            lambda other: write_arrays(path, arrays, {"checkpoint": json.dumps(other)}),
        ),
    ]:
        messages = outcomes(iter(variants), write, read)
        assert len(messages) > 3
        assert all("checkpoint.safetensors: " in message for message in messages)


def test_arrays_of_a_checkpoint(checkpoint: tuple[Path, ShapeNetwork, torch.optim.Optimizer]) -> None:
    path, model, optimiser = checkpoint
    arrays, header = read_arrays(path)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name in ("model.classifier.weight", "optimiser.1.step", "optimiser.1.exp_avg", "optimiser.0.exp_avg_sq"):
        sound = arrays[name]
        for wrong in (None, sound.ravel()[:0], sound.astype(np.int64), np.ones((2, 2, 2), np.float32)):
            changed = {key: value for key, value in (arrays | {name: wrong}).items() if value is not None}
            write_arrays(path, changed, header)
            with pytest.raises(InputError, match=r"checkpoint\.safetensors: "):
                read_checkpoint(path, model, optimiser, CONFIG.as_dict())
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)


def test_a_configuration_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(str(CONFIG))
    assert read_config(path) == CONFIG
    for text in ("a = [", "a = " + "[" * 10**5, "patches = 1", "[patches]\nangles = '2'", "[patches]\nscales = [[1]]"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"config\.toml"):
            read_config(path)


def test_a_log_with_lines_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    step = {"step": 1, "epoch": 0, "loss": 2.0, "accuracy": 0.5, "core_seconds": 60.0}
    lines = [json.dumps(other) for other in [step, *WRONG, *altered(step)]]
    path.write_text("\n".join([*lines, "[" * 10**5, '{"step": 1, "lo']) + "\n")
    assert read_log(path, *step)[0] == step
    assert training_curve(path)[0]["loss"] == pytest.approx(2.0, abs=2)
    assert read_log(tmp_path / "none.jsonl") == []
    Log(path, 1, active=True)
    assert all(kept["step"] <= 1 for kept in read_log(path, "step"))
