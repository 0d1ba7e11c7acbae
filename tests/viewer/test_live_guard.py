"""Who the live viewer's server answers, and with what."""

import http.client
import socket

import pytest

from acnn.errors import InputError
from acnn.viewer.live_guard import refusal, require_viser, start_server, stop_server

UPGRADE = [("Upgrade", "websocket"), ("Connection", "Upgrade")]


def asked(host, *more, path="/", on="127.0.0.1"):
    found = refusal([("Host", host), *more], path, on)
    return 200 if found is None else found[0]


def test_only_this_servers_names_are_answered():
    for name in ("127.0.0.1:8080", "localhost:8080", "LOCALHOST:9", "[::1]:8080", "127.0.0.1"):
        assert asked(name) == 200
    for name in ("evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example:8080", "192.168.1.5:8080", ""):
        assert asked(name) == 403
    assert refusal([], "/", "127.0.0.1")[0] == 403
    assert asked("localhost:8080", ("Host", "evil.example")) == 403  # two names


def test_beyond_loopback_addresses_pass_and_foreign_names_do_not():
    assert asked("192.168.1.5:8080", on="0.0.0.0") == 200
    assert asked(f"{socket.gethostname()}:8080", on="0.0.0.0") == 200
    assert asked("viewer.lab:8080", on="viewer.lab") == 200
    assert asked("evil.example:8080", on="0.0.0.0") == 403  # a name made to point here


def test_only_our_own_page_may_open_a_websocket():
    def socket_from(*origins):
        return asked("localhost:8080", *UPGRADE, *(("Origin", o) for o in origins), path="/?x=1")

    assert socket_from("http://localhost:8080") == 200
    for origin in ("http://evil.example", "http://localhost:3000", "http://localhost", "null", ""):
        assert socket_from(origin) == 403
    assert socket_from() == 403
    assert socket_from("http://localhost:8080", "http://evil.example") == 403
    # the letters of the header's value do not matter: any request to upgrade is checked
    assert asked("localhost:8080", ("upgrade", "WebSocket"), ("origin", "http://evil.example")) == 403


def test_there_is_one_page_and_no_file():
    assert asked("localhost", path="/index.html?a=b") == 200
    for path in (
        "/etc/passwd",
        "/../pyproject.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/x.js",
        "//etc/passwd",
        "/.",
    ):
        assert asked("localhost", path=path) == 404


def test_without_viser_the_error_says_how_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'acnn\[view\]'"):
        require_viser()


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("viser", reason="viser is not installed: pip install 'acnn[view]'")
    running = start_server(port=0)
    yield running
    stop_server(running)


def answer(server, path="/", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.get_port(), timeout=60)
    connection.request("GET", path, headers={"Host": f"127.0.0.1:{server.get_port()}"} | headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_the_running_server_keeps_to_it(server):
    page, body = answer(server)
    assert page.status == 200
    assert b"<html" in body.lower()
    policy = page.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy
    assert answer(server, Host="evil.example")[0].status == 403
    assert answer(server, "/../../../../etc/passwd")[0].status == 404
    assert answer(server, "/%2e%2e/%2e%2e/etc/passwd")[0].status == 404


def test_other_sites_pages_get_no_websocket(server):
    import viser
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    address = f"ws://127.0.0.1:{server.get_port()}"

    def opened(origin):
        with connect(address, origin=origin, subprotocols=[f"viser-v{viser.__version__}"]) as connection:
            return connection.recv(timeout=60)

    assert len(opened(f"http://127.0.0.1:{server.get_port()}")) > 0
    for origin in ("http://evil.example", "http://localhost:1", None):
        with pytest.raises(InvalidStatus, match="403"):
            opened(origin)


def close_code_after(server, *messages):
    """Connect as the page does and send messages, then read until the server hangs up; its close code."""
    import viser
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    address = f"127.0.0.1:{server.get_port()}"
    protocol = [f"viser-v{viser.__version__}"]
    with connect(f"ws://{address}", origin=f"http://{address}", subprotocols=protocol) as connection:
        try:
            for message in messages:
                connection.send(message)
            while True:
                connection.recv(timeout=300)  # other work of the server, such as compiling, comes first
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


@pytest.mark.filterwarnings("error:.*does not match annotation")
def test_garbage_costs_one_line_and_the_connection(server, capsys, caplog):
    import msgspec

    packed = msgspec.msgpack.encode
    garbage = {
        "no messages at all": b"\xc1\xff garbage",
        "text": "text, where the page sends bytes",
        "no type": packed({"a": 1}),
        "a list": packed([1, 2]),
        "an unknown type": packed({"type": "Nonsense"}),
        "missing fields": packed({"type": "GuiUpdateMessage"}),
        "fields of other types": packed({"type": "ViewerCameraMessage", "wxyz": "x"}),
        "deep": b"\x91" * 5000 + b"\x00",
    }
    for name, message in garbage.items():
        assert close_code_after(server, message) == 1008, name
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1, (name, said)
        assert "disconnected a client" in said[0]
    assert [record for record in caplog.records if record.exc_info] == []
    assert answer(server)[0].status == 200  # it still serves


def test_it_listens_on_loopback_alone_and_opens_no_tunnel(server):
    (bound,) = {s.getsockname()[0] for s in _listening(server.get_port())}
    assert bound == "127.0.0.1"
    assert server.request_share_url() is None
    assert server._share_tunnel is None


def _listening(port):
    """Sockets of this process that listen on a port."""
    import os

    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            one = socket.socket(fileno=os.dup(int(name)))
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and one.getsockname()[1] == port:
                found.append(one)
        except OSError:
            continue
    return found


def test_ports_and_hosts_that_cannot_be_used_are_named(server):
    with pytest.raises(InputError, match="--port"):
        start_server(port=server.get_port())
    with pytest.raises(InputError, match="65535"):
        start_server(port=70000)
    with pytest.raises(InputError, match=r"no\.such\.host\.invalid"):
        start_server(host="no.such.host.invalid", port=0)
