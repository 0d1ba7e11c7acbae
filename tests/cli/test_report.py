"""`acnn report` on a run trained for a moment on shapes of one's own."""

import json
import re

import numpy as np
import pytest
from analytic import write_bumps

from acnn.cli import main
from acnn.runs.train import train_run
from acnn.training import RunConfig


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    shapes = write_bumps(folder / "bumps", 4)
    changes = {"angles": 2, "scales": "6,24", "architecture": "FC8+IC8+Softmax", "epochs": 2}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACNN_CACHE", str(folder / "cache"))
        train_run(str(shapes), folder / "run", RunConfig().with_changes(changes), train_list="0-1")
        yield folder / "run"


def test_a_page_is_written_with_shapes_it_was_not_trained_on(run, tmp_path, capsys):
    assert main(["report", str(run), "--out", str(tmp_path / "new" / "page.html"), "--refine", "none", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["shapes"] == ["bump_2", "bump_3"]
    text = (tmp_path / "new" / "page.html").read_text()
    assert facts["bytes"] == len(text.encode())
    content = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))
    assert [shape["name"] for shape in content["shapes"]] == facts["shapes"]
    assert content["figures"]["network"]["exact"] == pytest.approx(facts["exact"])
    assert len(content["log"][0]) > 0
    assert "FC8+IC8+Softmax" in content["config"]
    assert np.isfinite(content["log"]).all()


def test_default_place_chosen_shapes_and_the_folder_around_the_run(run, capsys):
    assert main(["report", str(run.parent), "--test", "bump_1", "--refine", "none"]) == 0
    assert "1 shape," in capsys.readouterr().out
    assert (run.parent / "report.html").is_file()


def test_a_report_replaces_a_report_and_no_other_page(run, tmp_path, capsys):
    page = tmp_path / "page.html"
    arguments = ["report", str(run), "--out", str(page), "--test", "bump_1", "--refine", "none"]
    page.write_text("<html>mine</html>")
    assert main(arguments) == 2
    assert "page.html: already exists" in capsys.readouterr().err
    assert page.read_text() == "<html>mine</html>"
    assert main([*arguments, "--force"]) == 0
    assert main(arguments) == 0
    assert main(["report", str(run), "--out", str(run / "run.json"), "--force"]) == 2
    assert "one of the inputs" in capsys.readouterr().err


def test_clear_errors(run, tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert main(["report", str(run), "--test", "nobody"]) == 2
    assert main(["report", str(run), "--shapes", "0"]) == 2
    assert main(["report", str(run), "--refine", "none", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("error:") == 4
