"""Renders the images of the documentation: `python docs/make_images.py [--run demo/run] [NAME ...]`.

All show built-in shapes. `gallery` runs the scripts of `examples`, all or those of the numbers in `--only`, and keeps
their images in `images/gallery`, reduced to less than 80 kB. `soft_match` and `filters` show a trained network: the
one that `acnn demo` left in `demo/run`, where --run does not name another. `matches.png` is an image of the demo,
reduced in size.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from acnn import builtin_human, builtin_humans
from acnn.shapes import Mesh
from acnn.surface import principal_frames, surface_of
from acnn.viewer import grid, render, save_png, value_colors
from acnn.viewer.figures import draw_kernels

OUT = Path(__file__).parent / "images"
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
PLAIN, LARGER, SMALLER = (0.83, 0.84, 0.86), (0.80, 0.18, 0.12), (0.12, 0.30, 0.72)
UNSEEN = 136
"""A subject that the demo is not trained on."""


def main() -> None:
    """Render the images named on the command line, or all."""
    drawers: dict[str, Callable[[Path], Any]] = {
        "first_match": first_match,
        "kernels_human": kernels_human,
        "kernels_cylinder": kernels_cylinder,
        "directions": directions,
        "soft_match": soft_match,
        "filters": filters,
        "functional_maps": functional_maps,
    }
    names = [*drawers, "gallery"]
    parser = argparse.ArgumentParser(description="Render the images of the documentation.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--run", type=Path, default=Path("demo/run"), help="Run folder of a trained network.")
    parser.add_argument("--only", default="", help="Numbers of the examples in the gallery, such as 01,07.")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(names):
        parser.error(f"no such image: {', '.join(sorted(unknown))}. There are {', '.join(names)}.")
    for name in asked.names or names:
        if name == "gallery":
            targets = gallery([number for number in asked.only.split(",") if number])
        else:
            targets = [save_png(drawers[name](asked.run), OUT / f"{name}.png")]
        for target in targets:
            print(f"{target}: {target.stat().st_size / 1000:.0f} kB")


def gallery(numbers: list[str]) -> list[Path]:
    """Images of the example scripts, run one after the other on the files of `acnn sample`."""
    from acnn.runs.sample import write_sample

    scripts = sorted((OUT.parents[1] / "examples").glob("[0-9][0-9]_*.py"))
    targets = []
    with tempfile.TemporaryDirectory() as name:
        write_sample(Path(name) / "sample")
        for script in scripts:
            if not numbers or script.name[:2] in numbers:
                subprocess.run([sys.executable, str(script)], cwd=name, check=True)
                targets.append(OUT / "gallery" / f"{script.stem}.png")
                save_small(Path(name) / f"{script.stem}.png", targets[-1])
    return targets


def save_small(image: Path, target: Path, width: int = 720, limit: int = 80_000) -> None:
    """Write an image in at most this width; in 256 colours, and narrower, if its file reaches the limit in bytes."""
    from PIL import Image

    target.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(image) as full:
        size = (width, round(full.height * width / full.width)) if full.width > width else full.size
        small = full.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    small.save(target, optimize=True)
    if target.stat().st_size >= limit:
        small.quantize(256).save(target, optimize=True)
    if target.stat().st_size >= limit:
        save_small(image, target, round(0.9 * width), limit)


def first_match(_: Path) -> Any:
    """The files of `acnn sample`: A and B in corresponding colours, and the texture of B on A."""
    from acnn.runs.match_files import match_files
    from acnn.runs.sample import write_sample
    from acnn.runs.transfer import transfer_files

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sample(folder)
        a, b, result = folder / "A.ply", folder / "B.obj", folder / "result"
        match_files(a, b, None, result, barycentric=True)
        transfer_files(result, b, a, folder / "A_painted.glb", "texture")
        return first_match_image(folder, result, folder / "A_painted.glb")


def first_match_image(sample: Path, result: Path, painted: Path) -> Any:
    """A and B by their map, B with its texture, and A painted with it."""
    from acnn.runs.demo import render_textured
    from acnn.shapes import load

    size = {"size": (340, 518)}
    shown = [load(result / f"{name}_colored.ply") for name in "ba"]
    images = [render(shape, colors=shape.colors[:, :3] / 255.0, **size) for shape in shown]
    textured = [load(sample / "B.obj"), load(painted)]
    assert all(isinstance(shape, Mesh) for shape in textured)
    images += [render_textured(shape, **size) for shape in textured]
    return grid([images], [["B", "A, matched to B", "B with its texture", "the texture of B on A"]], text=28)


def kernels_human(_: Path) -> Any:
    """Kernels at the chest."""
    human = finer(builtin_human())
    front = human.vertices[:, 2] > np.median(human.vertices[:, 2])
    height = human.vertices[:, 1].min() + 0.66 * np.ptp(human.vertices[:, 1])
    vertex = int(np.argmin(np.abs(human.vertices[:, 1] - height) + 3 * np.abs(human.vertices[:, 0]) + 10 * ~front))
    return draw_kernels(human, vertex, size=(300, 400))


def kernels_cylinder(_: Path) -> Any:
    """Kernels on a cylinder, where directions are known."""
    from analytic import cylinder

    pipe = finer(cylinder(60, 90))
    upright = Mesh(pipe.vertices[:, [1, 2, 0]], pipe.faces)
    middle = int(np.argmin(np.linalg.norm(upright.vertices - [0, np.median(upright.vertices[:, 1]), 1], axis=1)))
    return draw_kernels(upright, middle, scales=(60.0, 240.0), size=(240, 320))


def directions(_: Path) -> Any:
    """Principal directions as short strokes, on the upper body."""
    from acnn.viewer.live_scene import direction_ribbons

    surface = surface_of(builtin_human(4, 1))
    strokes = direction_ribbons(surface, principal_frames(surface))
    points, faces, colors = [surface.vertices], [surface.faces], [np.tile(PLAIN, (len(surface.vertices), 1))]
    for quads, color in zip(strokes, (LARGER, SMALLER), strict=True):
        first = sum(len(part) for part in points)
        corners = first + 4 * np.arange(len(quads))[:, None]
        faces += [corners + [0, 1, 2], corners + [0, 2, 3]]
        points.append(quads.reshape(-1, 3))
        colors.append(np.tile(color, (4 * len(quads), 1)))
    drawn = Mesh(np.concatenate(points), np.concatenate(faces).astype(np.int32))
    paint = np.concatenate(colors)
    near = render(drawn, colors=paint, size=(1140, 1920), supersample=2)
    top, left = 230, (near.shape[1] - 800) // 2
    return near[top : top + 560, left : left + 800]


def soft_match(run_folder: Path) -> Any:
    """A vertex and its probability on the reference, for three levels of confidence."""
    from acnn.methods.run import open_run
    from acnn.runs.match import match_shape
    from acnn.viewer.figure_parts import refined_mesh
    from acnn.viewer.live_scene import spread_on_reference

    run = open_run(run_folder)
    mesh = builtin_humans().mesh(UNSEEN)
    soft = match_shape(mesh, run, refinement="none").soft_map
    front = np.flatnonzero(surface_of(mesh).normals[:, 2] > 0.6)
    order = front[np.argsort(-soft.confidence[front])]
    rows: list[list[Any]] = [[], []]
    labels: list[list[str]] = [[], []]
    for quantile in (0.02, 0.6, 0.97):
        vertex = int(order[int(quantile * len(order))])
        spot = np.exp(-((np.linalg.norm(mesh.vertices - mesh.vertices[vertex], axis=1) / 0.03) ** 2))
        spread = spread_on_reference(soft, vertex)
        for row, shape, values in ((0, mesh, spot), (1, run.reference, spread)):
            fine, smooth = refined_mesh(shape, values / values.max(), 3)
            rows[row].append(render(fine, colors=tinted(smooth), size=(270, 400)))
        labels[0].append("a vertex")
        labels[1].append(f"most probable: {100 * soft.confidence[vertex]:.0f} %")
    return grid(rows, labels, text=18)


def filters(run_folder: Path) -> Any:
    """The strongest filters of the first convolution."""
    from acnn.methods.run import open_run
    from acnn.viewer.figures import draw_filters

    return draw_filters(open_run(run_folder).model, columns=8, rows=2, size=110)


def functional_maps(_: Path) -> Any:
    """Matrices of true maps between two humans: of a full shape, and of a partial shape."""
    from acnn.correspondence import basis_of
    from acnn.correspondence.functional_map import functional_map_from_point_map
    from acnn.datasets.parts import cut_part

    full = surface_of(builtin_human(0, 0))
    other = builtin_human(0, 5)
    part, kept = cut_part(other, "cuts", 0.5, seed=1)
    size, pixels = 50, 7
    images = []
    for mesh, truth in ((other, np.arange(len(other.vertices))), (part, kept)):
        surface = surface_of(mesh, surface_of(other).unit)
        there, here = basis_of(full, size), basis_of(surface, size)
        entries = functional_map_from_point_map(here, there, truth, size)
        most = float(np.abs(entries).max())
        square = np.rint(255 * value_colors(entries, "diverging", -most, most)[..., :3]).astype(np.uint8)
        images.append(square.repeat(pixels, axis=0).repeat(pixels, axis=1))
    return grid([images], [["full shape", "half of the area missing"]], gap=16, text=18)


def finer(mesh: Mesh) -> Mesh:
    """Split each triangle into four, so that narrow kernels are rendered smoothly."""
    from analytic import subdivided

    return subdivided(mesh)


def tinted(fraction: Any) -> Any:
    """Colours from plain grey (0) to red (1)."""
    weight = np.clip(np.asarray(fraction), 0.0, 1.0)[:, None] ** 0.7
    return (1 - weight) * np.array(PLAIN) + weight * np.array(LARGER)


if __name__ == "__main__":
    main()
