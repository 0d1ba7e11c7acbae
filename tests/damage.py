"""The program that damages files, `benchmarks/fuzz_readers.py`, for tests."""

import importlib.util
import sys
from pathlib import Path

_path = Path(__file__).parents[1] / "benchmarks" / "fuzz_readers.py"
_spec = importlib.util.spec_from_file_location("fuzz_readers", _path)
benchmark = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = benchmark  # dataclasses look their module up
_spec.loader.exec_module(benchmark)
