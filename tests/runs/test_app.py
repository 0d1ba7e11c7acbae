"""The local application: who is answered, what may be uploaded, and the page in a browser."""

import http.client
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser

from acnn.datasets.humans.sample_shapes import sample_shapes
from acnn.errors import InputError
from acnn.runs import app
from acnn.shapes import load, save


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with app.serve_app(0) as found:
        yield found


@pytest.fixture
def clean(address: str) -> str:
    for side in ("a", "b"):
        assert ask(address, f"/files/{side}", "DELETE")[0] == 200
    return address


def ask(address: str, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    """Status and body of a request with the right token, unless headers say otherwise."""
    parts = urllib.parse.urlsplit(address)
    token = urllib.parse.parse_qs(parts.query)["token"][0]
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in {"X_Acnn_Token": token, **headers}.items()}
    connection.request(method, path, body, named)
    response = connection.getresponse()
    return response.status, response.read()


@pytest.mark.parametrize(
    "headers",
    [
        {"X_Acnn_Token": ""},
        {"X_Acnn_Token": "wrong"},
        {"Host": "example.com"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://example.com"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize(
    ("path", "method"), [("/", "GET"), ("/status", "GET"), ("/sample", "POST"), ("/match", "POST")]
)
def test_strangers_are_refused(address: str, path: str, method: str, headers: dict[str, str]) -> None:
    assert ask(address, path, method, **headers)[0] == 403


def test_only_loopback_is_listened_on(address: str) -> None:
    assert urllib.parse.urlsplit(address).hostname == "127.0.0.1"
    assert len(urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)["token"][0]) >= 32


@pytest.mark.parametrize(
    "name",
    [
        "..%2F..%2Fetc%2Fpasswd",
        ".hidden.ply",
        "%2Fetc%2Fpasswd",
        "a%00.ply",
        "shape.exe",
        "x" * 130 + ".ply",
        "a%5Cb.ply",
    ],
)
def test_names_that_are_paths_or_no_shapes_are_refused(clean: str, name: str) -> None:
    status = ask(clean, f"/files/a/{name}", "PUT", b"ply")[0]
    assert status in (400, 404)
    assert json.loads(ask(clean, "/status")[1])["files"] == {"a": [], "b": []}


def test_results_are_served_by_name_only(address: str) -> None:
    for name in ("..%2Fa%2Fx.ply", "nothing.txt", "match.html", "%2Fetc%2Fpasswd"):
        assert ask(address, f"/result/{name}")[0] == 404


def test_uploads_are_bounded(clean: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_BYTES", 1000)
    monkeypatch.setattr(app, "MAX_FILES", 2)
    status, body = ask(clean, "/files/a/large.ply", "PUT", bytes(1001))
    assert (status, b"for one shape" in body) == (400, True)
    for name in ("one.obj", "one.mtl"):
        assert ask(clean, f"/files/a/{name}", "PUT", bytes(10))[0] == 200
    assert ask(clean, "/files/a/one.png", "PUT", bytes(10))[0] == 400
    assert ask(clean, "/files/a/two.ply", "PUT", bytes(10))[0] == 400
    assert json.loads(ask(clean, "/status")[1])["files"]["a"] == ["one.mtl", "one.obj"]


def test_a_match_needs_two_shapes(clean: str) -> None:
    assert ask(clean, "/match", "POST") == (400, b'{"error":"Two shapes are needed: drop a file on each side."}')
    assert ask(clean, "/paint", "POST")[0] == 400


def test_a_port_in_use_is_reported(address: str) -> None:
    port = urllib.parse.urlsplit(address).port
    with pytest.raises(InputError, match=f"Port {port} cannot be used"), app.serve_app(port):
        pass


def test_the_page_matches_two_shapes_and_transfers_a_texture(clean: str, tmp_path: Path) -> None:
    shapes = sample_shapes()
    save(shapes.coarse_human(0, 0), tmp_path / "<b>A's.ply")
    assert (
        ask(
            clean,
            f"/files/a/{urllib.parse.quote(chr(39) + ' &amp; A.ply')}",
            "PUT",
            (tmp_path / "<b>A's.ply").read_bytes(),
        )[0]
        == 200
    )
    save(shapes.coarse_human(1, 3), tmp_path / "B.ply")
    ask(clean, "/files/b/B.ply", "PUT", (tmp_path / "B.ply").read_bytes())
    with Browser() as page:
        page.open(clean)
        page.wait("!document.getElementById('match').disabled")
        assert page.run("document.querySelector('#drop-a .files').textContent") == "' &amp; A.ply"
        assert page.barriers() == []
        page.run("document.getElementById('match').click()")
        page.wait("/Verdict: (good|doubtful)/.test(document.getElementById('verdict').textContent)")
        names = page.run("[...document.querySelectorAll('#downloads a')].map(a => a.download).join()").split(",")
        assert {"match.html", "a_to_b.txt", "map.npz", "a_colored.ply"} <= set(names)
        assert page.barriers() == []
        page.run("document.getElementById('paint').click()")
        page.wait("document.getElementById('message').classList.contains('failed')")
        assert "texture" in page.run("document.getElementById('message').textContent")  # B has none
        assert not [problem for problem in page.problems if "400" not in problem]
    rows = ask(clean, "/result/a_to_b.txt")[1].split()
    assert len(rows) == len(load(tmp_path / "B.ply").vertices)
