import sys
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from acnn.runs.cost import machine_memory_mb, peak_memory_mb


def test_the_peak_grows_with_what_the_process_held_and_stays():
    before = peak_memory_mb()
    block = np.ones(int(before * 1e6 / 8) + 10_000_000)
    during = peak_memory_mb()
    assert during > block.nbytes / 1e6
    del block
    assert peak_memory_mb() >= during


def test_windows_is_asked_for_its_own_peak(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)  # Python on Windows has no such module
    now = SimpleNamespace(rss=5_000_000, peak_wset=7_000_000)
    monkeypatch.setattr(psutil, "Process", lambda: SimpleNamespace(memory_info=lambda: now))
    assert peak_memory_mb() == pytest.approx(7.0)


def test_memory_of_the_machine():
    memory = machine_memory_mb()
    assert 100 < memory["available"] < memory["total"]
