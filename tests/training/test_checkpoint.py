"""Checkpoints outlive a power failure."""

import os

import torch

from acnn.network import ShapeNetwork
from acnn.training.checkpoint import Progress, read_checkpoint, write_checkpoint


def test_a_checkpoint_and_its_name_are_on_the_disk_before_it_counts(tmp_path, monkeypatch):
    events = []
    sync, replace = os.fsync, os.replace

    def synced(handle):
        sync(handle)
        events.append(os.fstat(handle).st_ino)

    def renamed(source, target):
        events.append(("named", os.stat(source).st_ino, os.stat(source).st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    model = ShapeNetwork("FC4+Softmax", 3, 5, 2, 1)
    optimiser = torch.optim.AdamW(model.parameters())
    path = tmp_path / "checkpoint.safetensors"
    write_checkpoint(path, model, optimiser, Progress(step=3), {})
    file = path.stat()
    assert events == [file.st_ino, ("named", file.st_ino, file.st_size), tmp_path.stat().st_ino]
    assert read_checkpoint(path, model, optimiser, {}).step == 3
