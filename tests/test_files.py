"""Files are written whole or not at all."""

import itertools
import sys
from pathlib import Path

import pytest
from analytic import sphere

import acnn
from acnn.shapes import load, save

SOURCES = str(Path(acnn.__file__).parent)


def interrupted(action, step):
    """Run an action with Ctrl-C at a line of the package's code, the lines counted as they are run; True if it came."""
    count = itertools.count()

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(SOURCES):
            return None
        if event == "line" and next(count) == step:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interruption_at_any_line_leaves_the_whole_file_or_nothing(tmp_path):
    mesh = sphere(0)
    save(mesh, tmp_path / "shape.off")  # so that nothing is imported for the first time below
    whole = (tmp_path / "shape.off").read_bytes()
    for step in itertools.count():
        (tmp_path / "shape.off").unlink(missing_ok=True)
        came = interrupted(lambda: save(mesh, tmp_path / "shape.off"), step)
        assert {path.name for path in tmp_path.iterdir()} <= {"shape.off"}
        if (tmp_path / "shape.off").exists():
            assert (tmp_path / "shape.off").read_bytes() == whole
        if not came:
            break
    assert step > 10
    assert len(load(tmp_path / "shape.off").faces) == len(mesh.faces)


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    save(sphere(0), tmp_path / "shape.off")
    before = (tmp_path / "shape.off").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(acnn.InputError, match="No space left"):
        save(sphere(1), tmp_path / "shape.off")
    assert [path.name for path in tmp_path.iterdir()] == ["shape.off"]
    assert (tmp_path / "shape.off").read_bytes() == before
