"""Server of the live viewer: the one of viser, with every request checked.

viser accepts WebSockets of any page and ignores the `Host` header. A page of another site could therefore read the
shapes and operate the controls (cross-site WebSocket hijacking, DNS rebinding). Here every request is checked before it
reaches viser:

- `Host` must name this server: loopback names and addresses, or with `--host` the address or name given, the name of
  this machine, or any bare IP address (a rebound name is none)
- the `Origin` of a WebSocket must be the `Host`: only pages of this server may connect
- one page is served, that of viser; every other path is 404. No path leads to a file of the user
- the page may connect to this server only (Content-Security-Policy) and may not be embedded in another
- a client that sends anything but messages of that page is disconnected, with one line on standard error

There is no password: other users of the same machine can open the page, and with `--host` those on the network. The
tunnel of viser to a public address is disabled.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import ipaddress
import socket
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

from acnn.errors import InputError

LOOPBACK = "127.0.0.1"
PORT = 8080
PATHS = ("/", "/index.html")
_NOT_OURS = 1008
"""WebSocket close code of a message against the rules of the server (RFC 6455, section 7.4.1)."""

_starting = threading.Lock()


def start_server(host: str = LOOPBACK, port: int | None = None, label: str = "acnn") -> Any:
    """Start the server of viser with every request checked.

    Parameters
    ----------
    host : str
        Address or name to listen on.
    port : int or None
        None takes 8080 or the next free one; 0 any free one.
    label : str
        Title of the control panel.

    Returns
    -------
    viser.ViserServer
        The running server; stop it with `stop_server`.

    Raises
    ------
    InputError
        If viser is missing, the address or port cannot be used, or requests cannot be checked in this version of viser.
    """
    require_viser()
    import viser
    import websockets.asyncio.server as websocket_server

    _check_free(host, PORT if port is None else port, fixed=port is not None)
    # viser only warns, quoting the client, where it should reject.
    warnings.filterwarnings("error", message=r"\[viser\] .* does not match annotation")
    plain = websocket_server.serve

    class Guarded(plain):  # type: ignore[misc, valid-type]
        def __init__(self, handler: Any, *args: Any, process_request: Any = None, **kwargs: Any) -> None:
            checked = _checked(process_request, host)
            super().__init__(_closing_on_garbage(handler), *args, process_request=checked, **kwargs)

    # viser has no parameter for this: the name is looked up when its thread starts, and restored once it is bound.
    with _starting, contextlib.redirect_stdout(sys.stderr), _no_banner():
        websocket_server.serve = Guarded  # type: ignore[misc]
        try:
            server: Any = viser.ViserServer(host=host, port=PORT if port is None else port, label=label, verbose=False)
        finally:
            websocket_server.serve = plain  # type: ignore[misc]
    server.request_share_url = lambda verbose=True: None
    _guard_messages(server)
    if not _is_guarded(host, server.get_port()):
        server.stop()
        raise InputError(
            f"viser {viser.__version__} does not allow its requests to be checked, so it was stopped. "
            "Install one that does: pip install 'viser==1.1.*'."
        )
    return server


def require_viser() -> None:
    """Raise InputError if viser is not installed."""
    from importlib.util import find_spec

    if find_spec("viser") is None:
        raise InputError("The live viewer needs viser, which is not installed: pip install 'acnn[view]'.")


def stop_server(server: Any) -> None:
    """Stop a server, without the message of viser."""
    with _starting, _no_banner():
        server.stop()


def dropping(server: Any, callback: Callable[[Any], None], after: Callable[[], None] = lambda: None) -> Any:
    """Wrap a callback of viser, so that a client is disconnected if its event has invalid values.

    Parameters
    ----------
    server : viser.ViserServer
        From `start_server`.
    callback : callable
        Takes the event; an `InputError`, `TypeError` or `ValueError` means that the client sent invalid values.
    after : callable
        Called in that case, to undo what viser has already taken from the event.

    Returns
    -------
    callable
        Takes the event.
    """

    def guarded(event: Any) -> None:
        try:
            callback(event)
        except (InputError, TypeError, ValueError) as problem:
            _drop(server._websock_server, event.client_id, problem)
            after()

    return guarded


def refusal(headers: list[tuple[str, str]], path: str, served_on: str) -> tuple[int, str] | None:
    """Return why a request is rejected.

    Parameters
    ----------
    headers : list[tuple[str, str]]
        Names and values, in order.
    path : str
        Requested path, with its query.
    served_on : str
        Address or name that the server listens on.

    Returns
    -------
    tuple[int, str] or None
        HTTP status and text; None if the request is accepted.
    """
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(value.strip())
    hosts, origins = values.get("host", []), values.get("origin", [])
    if len(hosts) != 1 or not _is_ours(hosts[0], served_on):
        return 403, "Unknown host name."
    if "upgrade" in values:
        allowed = {f"{scheme}://{hosts[0].lower()}" for scheme in ("http", "https")}
        if len(origins) != 1 or origins[0].lower() not in allowed:
            return 403, "Only this server's own page may connect."
        return None
    if path.partition("?")[0] not in PATHS:
        return 404, "There is one page here: /"
    return None


def _is_ours(host: str, served_on: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.lower().removeprefix("[").removesuffix("]")
    local = _is_loopback(served_on)
    if name == "localhost" or name == served_on.lower():
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return not local and name in {socket.gethostname().lower(), socket.getfqdn().lower()}
    return address.is_loopback or not local


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _checked(answer: Callable[[Any, Any], Any], served_on: str) -> Callable[[Any, Any], Any]:
    """A `process_request` that rejects requests, or calls that of viser and adds headers to its page."""

    def process_request(connection: Any, request: Any) -> Any:
        headers = list(request.headers.raw_items())
        refused = refusal(headers, request.path, served_on)
        if refused is not None:
            return connection.respond(refused[0], refused[1] + "\n")
        response = answer(connection, request)
        if response is not None:
            host = request.headers["Host"]
            local = "'self' data: blob:"
            response.headers["Content-Security-Policy"] = (
                f"default-src {local} 'unsafe-inline' 'unsafe-eval'; connect-src {local} ws://{host} wss://{host}; "
                "frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
            )
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
        return response

    return process_request


def _closing_on_garbage(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The connection handler of viser, without a traceback for unreadable messages."""

    async def handle(connection: Any) -> None:
        try:
            await handler(connection)
        except Exception as problem:
            _report(problem)
            await connection.close(_NOT_OURS)

    return handle


def _guard_messages(server: Any) -> None:
    """Disconnect clients whose messages are readable but invalid; viser would print a traceback each time."""
    sockets = server._websock_server

    def guard(receiver: Any) -> None:
        plain = receiver._handle_incoming_message

        async def handle(client: int, message: Any) -> None:
            try:
                await plain(client, message)
            except Exception as problem:
                _drop(sockets, client, problem)

        receiver._handle_incoming_message = handle

    guard(sockets)  # messages for all clients
    sockets.on_client_connect(guard)  # messages of one client


def _drop(sockets: Any, client: int, problem: Exception) -> None:
    connection = sockets._live_connections.get(client)
    if connection is not None:  # else it was disconnected for an earlier message
        _report(problem)
        asyncio.run_coroutine_threadsafe(connection.close(_NOT_OURS), sockets._background_event_loop)


def _report(problem: Exception) -> None:
    what = type(problem).__name__
    print(f"The viewer disconnected a client that is not its page (unexpected message: {what}).", file=sys.stderr)


def _check_free(host: str, port: int, fixed: bool) -> None:
    """Check that the address can be listened on; viser would try a thousand ports and then hang."""
    if not 0 <= port < 65536:
        raise InputError(f"Port {port}: ports are 1 to 65535, or 0 for any free one.")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as problem:
        raise InputError(f"--host {host}: no address of that name ({problem.strerror}).") from None
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(address if fixed else (address[0], 0, *address[2:]))
        except PermissionError:
            raise InputError(f"Port {port} is reserved for the system: choose one above 1023 with --port.") from None
        except OSError as problem:
            what = f"{host} port {port}" if fixed else host
            raise InputError(f"Cannot listen on {what} ({problem.strerror}): choose another with --port.") from None


def _is_guarded(host: str, port: int) -> bool:
    """Whether the running server rejects what it should, and serves its page."""
    target = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    upgrade |= {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    trials = (
        ("/", {"Host": f"elsewhere.example:{port}"}, 403),
        ("/", {"Host": f"localhost:{port}", "Origin": "http://elsewhere.example"} | upgrade, 403),
        ("/etc/passwd", {"Host": f"localhost:{port}"}, 404),
        ("/", {"Host": f"localhost:{port}"}, 200),
    )
    for path, headers, wanted in trials:
        connection = http.client.HTTPConnection(target, port, timeout=60)
        try:
            connection.request("GET", path, headers=headers)
            if connection.getresponse().status != wanted:
                return False
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
    return True


@contextlib.contextmanager
def _no_banner() -> Any:
    """Suppress the banner of viser, whose address cannot always be opened; the command prints its own."""
    import rich

    loud = rich.print
    rich.print = lambda *args, **kwargs: None
    try:
        yield
    finally:
        rich.print = loud
