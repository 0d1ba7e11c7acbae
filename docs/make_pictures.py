"""Draws the pictures of the documentation: `python docs/make_pictures.py`."""

import sys
from pathlib import Path

import numpy as np

from acnn import builtin_human
from acnn.shapes import Mesh
from acnn.viewer import save_png
from acnn.viewer.kernels import draw_kernels

OUT = Path(__file__).parent / "pictures"
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def finer(mesh: Mesh) -> Mesh:
    """Each triangle in four, so that thin kernels are drawn smoothly."""
    from analytic import subdivided

    return subdivided(mesh)


def main() -> None:
    """Draw all pictures."""
    from analytic import cylinder

    OUT.mkdir(exist_ok=True)
    human = finer(builtin_human())
    front = human.vertices[:, 2] > np.median(human.vertices[:, 2])
    height = human.vertices[:, 1].min() + 0.66 * np.ptp(human.vertices[:, 1])
    vertex = int(np.argmin(np.abs(human.vertices[:, 1] - height) + 3 * np.abs(human.vertices[:, 0]) + 10 * ~front))
    save_png(draw_kernels(human, vertex, size=(300, 400)), OUT / "kernels_human.png")
    pipe = finer(cylinder(60, 90))
    upright = Mesh(pipe.vertices[:, [1, 2, 0]], pipe.faces)
    middle = int(np.argmin(np.linalg.norm(upright.vertices - [0, np.median(upright.vertices[:, 1]), 1], axis=1)))
    save_png(draw_kernels(upright, middle, scales=(60.0, 240.0), size=(240, 320)), OUT / "kernels_cylinder.png")


if __name__ == "__main__":
    main()
