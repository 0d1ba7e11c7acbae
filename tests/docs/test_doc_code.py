"""Python blocks of the Markdown files run: page by page, in order, each page in a folder of its own.

In the folder are `person.ply`, `other.ply` and `scan.obj` (small closed meshes of one connectivity), and `run`, a small
network that has learned from them for two steps. A page's blocks share their names, and those of `given` are known
beforehand.
"""

import os

import numpy as np
import pytest
from analytic import bumpy
from doc_pages import PAGES

from acnn.runs.train import train_run
from acnn.shapes import Mesh, save
from acnn.training import preset_config

WITH_CODE = [page for page in PAGES if any(block.language == "python" for block in page.blocks)]


def given(page):
    """Names that a page speaks of without making them."""
    if page == "README.md":
        import torch

        return {"x": torch.ones(len(bumpy(2).vertices), 64)}
    return {}


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    mesh = bumpy(2)
    stretched = Mesh(mesh.vertices * [1.0, 1.2, 0.9], mesh.faces)
    data = folder / "data"
    data.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACNN_CACHE", str(folder / "cache"))
        for name, shape in (("person", mesh), ("other", stretched)):
            save(shape, data / f"{name}.ply")
        changes = {"epochs": 1, "minutes": 0, "angles": 4, "scales": "6,36", "architecture": "FC8+IC8+FC16+Softmax"}
        train_run(data, folder / "run", preset_config("quick").with_changes(changes))
        for name, shape in (("person", mesh), ("other", stretched)):
            save(shape, folder / f"{name}.ply")
        save(stretched, folder / "scan.obj")
        patch.chdir(folder)
        yield folder


def test_there_are_blocks():
    assert {"README.md", "docs/engineers.md"} <= {page.name for page in WITH_CODE}


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_blocks_run(page, workplace):
    names = {"__name__": "page", **given(page.name)}
    for block in page.blocks:
        if block.language == "python":
            # Lines of the block are those of the file, so that an error says where it is.
            code = compile("\n" * (block.line - 1) + block.text, page.name, "exec")
            exec(code, names)
    if page.name == "docs/engineers.md":
        assert names["smoothed"].shape == names["mesh"].vertices.shape
        assert np.isfinite(float(names["loss"].detach()))
        assert names["table"].shape == (len(names["mesh"].vertices), 8, 3, 3)
        assert np.allclose(names["W"].sum(axis=1), 0, atol=1e-9)
    assert os.getcwd() == str(workplace)
