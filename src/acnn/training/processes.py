"""Several processes training one network, started by `torchrun`; alone, all of this does nothing."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import nn


class Processes:
    """The processes of a run: who this one is, and sums over all of them, through gloo."""

    def __init__(self) -> None:
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        if self.count > 1 and not dist.is_initialized():
            dist.init_process_group("gloo")

    def sum(self, value: float) -> float:
        """The sum of a number over all processes."""
        if self.count == 1:
            return value
        tensor = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(tensor)
        return float(tensor)

    def agreed(self, value: float) -> float:
        """The first process's value, for all: clocks differ."""
        if self.count == 1:
            return value
        tensor = torch.tensor([value], dtype=torch.float64)
        dist.broadcast(tensor, 0)
        return float(tensor)

    def sum_gradients(self, model: nn.Module) -> None:
        """Replace every gradient by the sum over all processes."""
        if self.count == 1:
            return
        for parameter in model.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def average_buffers(self, model: nn.Module) -> None:
        """Replace running statistics by their mean over all processes."""
        if self.count == 1:
            return
        for buffer in model.buffers():
            if buffer.is_floating_point():
                dist.all_reduce(buffer)
                buffer /= self.count
