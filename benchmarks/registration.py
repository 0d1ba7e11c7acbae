"""Registration of the template tr_reg_000 onto FAUST: the fit from true matches, and the whole of `acnn.register`.

Targets 000-059 are remeshed here (for choosing settings); 060-079 are the remeshed shapes of `faust_r`, which are
shifted and scaled: a similarity fitted to their `sampleID` vertices brings results back to metres. Errors are distances
to the vertices of the registration of the same number; for clouds, of those outside the missing part, whether or not
the fit recognises that there is data. `--transfer A B`: the mesh B moved onto the surface of A, as `acnn transfer
--shape` does along the map of A to B; files below the folder of research data.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

import acnn
from acnn.registration import Fit, face_damage, fit
from acnn.shapes.mesh import BarycentricPoints, Mesh, PointCloud
from acnn.surface.simplify import remesh

NOISE = 0.002
"""Standard deviation of the noise of clouds, in metres."""

MISSING = 0.3
"""Radius of the part that clouds lack, in metres."""


def target(data: Path, number: int) -> tuple[Mesh, np.ndarray, Mesh]:
    """The shape in metres, the template vertex of each of its vertices (-1: unknown), and its true registration."""
    truth = acnn.load(data / f"faust/training/registrations/tr_reg_{number:03d}.ply")
    if number < 60:
        made = remesh(truth, vertices=5000, seed=number)
        return made.mesh, made.truth.nearest_vertex(truth.vertices, truth.faces), truth
    mesh = acnn.load(data / f"faust_r/off/tr_reg_{number:03d}.off")
    rows = np.loadtxt(data / f"faust_r/corres/tr_reg_{number:03d}.vts", dtype=int) - 1
    samples = np.loadtxt(data / "faust_r/corres/sampleID.vts", dtype=int) - 1
    matched = np.full(len(mesh.vertices), -1)
    matched[rows] = samples
    here, there = mesh.vertices[rows], truth.vertices[samples]
    left, values, right = np.linalg.svd((there - there.mean(0)).T @ (here - here.mean(0)))
    sign = np.array([1, 1, np.sign(np.linalg.det(left @ right))])
    turn = (left * sign) @ right
    scale = (values * sign).sum() / ((here - here.mean(0)) ** 2).sum()
    metres = scale * (mesh.vertices - here.mean(0)) @ turn.T + there.mean(0)
    return Mesh(metres, mesh.faces), matched, truth


def partial_cloud(mesh: Mesh, seed: int, count: int = 10_000) -> tuple[PointCloud, np.ndarray]:
    """Random noisy points of a mesh, without those within `MISSING` of a random vertex, and the position of that."""
    random = np.random.default_rng(seed)
    corners = mesh.vertices[mesh.faces]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    hole = mesh.vertices[random.integers(len(mesh.vertices))]
    kept = np.linalg.norm(corners.mean(axis=1) - hole, axis=1) > MISSING
    faces = random.choice(len(areas), count, p=areas * kept / (areas * kept).sum())
    points = np.einsum("nk,nkd->nd", random.dirichlet(np.ones(3), count), corners[faces])
    return PointCloud(points + random.normal(0, NOISE, points.shape)), hole


def row(name: str, template: Mesh, fitted: Fit, shape: Mesh, truth: Mesh, seconds: float, hole: np.ndarray) -> dict:
    """Figures of one fit; a hole of nan is none."""
    known = ~(np.linalg.norm(truth.vertices - hole, axis=1) <= MISSING)
    errors = 1000 * np.linalg.norm(fitted.vertices - truth.vertices, axis=1)
    residuals = 1000 * fitted.residuals[known]
    return {
        "shape": name,
        "error_mm": errors[known].mean(),
        "error_with_data_mm": errors[fitted.has_data].mean(),
        "surface_mm": residuals.mean(),
        "within_3_mm": float((residuals <= 3).mean()),
        "damaged": fitted.damage.collapsed_faces + fitted.damage.inverted_faces,
        "damaged_truth": int(face_damage(shape, template, truth.vertices).inverted.sum()),
        "with_data": float(fitted.has_data[known].mean()),
        "processor_seconds": seconds,
    }


def transfer(a: Path, b: Path) -> dict:
    """Figures of the mesh b on the surface of a."""
    here, mesh = acnn.load(a), acnn.load(b)
    begin = time.process_time()
    found = acnn.match(here, mesh)
    fitted = fit(mesh, here, found.points, here.vertices, found.confidence)
    seconds = time.process_time() - begin
    corners = here.vertices[here.faces]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum()
    return {
        "shape": f"{b.stem} on {a.stem}",
        "verdict": found.verdict,
        "surface_percent": float(100 * fitted.residuals.mean() / np.sqrt(area)),
        "inverted": fitted.damage.inverted_faces,
        "collapsed": fitted.damage.collapsed_faces,
        "largest_stretch": fitted.damage.largest_stretch,
        "processor_seconds": seconds,
    }


def show(figures: dict, as_json: bool) -> None:
    texts = [f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in figures.items()]
    print(json.dumps(figures) if as_json else "  ".join(texts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--transfer", nargs=2, metavar=("A", "B"), action="append", default=[])
    parser.add_argument("--only", choices=["fit", "match", "cloud"], action="append")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    data = Path(os.environ["ACNN_DATA"])
    template = acnn.load(data / "faust/training/registrations/tr_reg_000.ply")
    for a, b in given.transfer:
        show(transfer(data / a, data / b), given.json)
    for number in given.numbers:
        mesh, matched, truth = target(data, number)
        shape = acnn.from_arrays(mesh.vertices, mesh.faces)
        for what in given.only or ["fit", "match", "cloud"]:
            cloud, hole = partial_cloud(mesh, number) if what == "cloud" else (None, np.full(3, np.nan))
            begin = time.process_time()
            if what == "fit":
                points = BarycentricPoints.at_vertices(template.faces, matched)
                fitted = fit(template, mesh, points, mesh.vertices)
            elif what == "match":
                fitted = acnn.register(template, shape).fit
            else:
                fitted = acnn.register(template, cloud).fit
            seconds = time.process_time() - begin
            show(row(f"{number:03d} {what}", template, fitted, mesh, truth, seconds, hole), given.json)


if __name__ == "__main__":
    main()
