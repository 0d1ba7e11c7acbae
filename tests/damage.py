"""The program that damages files, `benchmarks/damaged_files.py`, for tests."""

import importlib.util
from pathlib import Path

_path = Path(__file__).parents[1] / "benchmarks" / "damaged_files.py"
_spec = importlib.util.spec_from_file_location("damaged_files", _path)
benchmark = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(benchmark)
