import subprocess
import sys


def test_import_of_the_package_loads_no_large_library():
    """`import acnn` stays below 0.3 s because what takes longer to import is loaded when it is used."""
    listed = "import sys, acnn; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True).stdout.split()
    assert "acnn" in loaded
    assert not {"numpy", "scipy", "torch", "numba", "matplotlib", "trimesh", "typer"} & set(loaded)
