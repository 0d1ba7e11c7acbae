"""Local web application: two shapes are dropped on a page, matched, looked at, and a texture is transferred.

The server listens on the loopback address only, and answers nobody without the token that is part of the address:

- `Host` must be this server, and `Origin`, where a browser sends one, its own page
- every request carries the token, in the address of the page or in a header
- files are stored under checked names in a temporary folder that is removed at the end; number and sizes are bounded
- results are served by name from a fixed list; no path leads to any other file
- matches run in a process of their own, which can be cancelled and cannot take the server with it
"""

from __future__ import annotations

import multiprocessing
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acnn.errors import InputError
from acnn.progress import Progress, TimeEstimate, begin_stage
from acnn.shapes.load import format_by_name, load
from acnn.shapes.mesh import Mesh
from acnn.viewer.pages import app_page

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LOOPBACK = "127.0.0.1"
PORT = 8090
MAX_BYTES = 1 << 30
"""Largest upload for one shape, all of its files together: 1 GiB."""

MAX_FILES = 12
"""Largest number of files of one shape: an OBJ with its materials and images."""

BESIDE = (".mtl", ".png", ".jpg", ".jpeg", ".bin")
"""Files that may lie beside a shape."""

SIDES = ("a", "b")
PAINTED = "painted.glb"
RESULTS = {
    "match.html": "text/html; charset=utf-8",
    "a_to_b.txt": "text/plain; charset=utf-8",
    "confidence.txt": "text/plain; charset=utf-8",
    "map.npz": "application/octet-stream",
    "a_colored.ply": "application/octet-stream",
    "b_colored.ply": "application/octet-stream",
    PAINTED: "model/gltf-binary",
}
"""Files of a result that are served, with their types."""


class Job:
    """Work in a process of its own, which sends its stages and its result.

    Parameters
    ----------
    work : callable
        Called with a progress and `arguments`; a function of a module, since the process is a new one.
    arguments : Any
        That can be sent to it.
    """

    def __init__(self, work: Callable[..., dict[str, Any]], *arguments: Any) -> None:
        self.stage, self.error = "starting", ""
        self.result: dict[str, Any] | None = None
        self._left: float | None = None
        self._began = time.monotonic()
        self._ended: float | None = None
        context = multiprocessing.get_context("spawn")
        self._receive, send = context.Pipe(duplex=False)
        self._process = context.Process(target=_send_work, args=(send, work, arguments), daemon=True)
        self._process.start()
        send.close()
        threading.Thread(target=self._follow, daemon=True).start()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._ended is None

    def cancel(self) -> None:
        """End the process."""
        if self.running:
            self.error = "Cancelled."
            self._process.terminate()

    def as_dict(self) -> dict[str, Any]:
        """What the page shows of it."""
        seconds = (time.monotonic() if self._ended is None else self._ended) - self._began
        state = "running" if self.running else "failed" if self.error else "done"
        facts = {"state": state, "stage": self.stage, "seconds": seconds, "left": self._left}
        return facts | {"result": self.result, "error": self.error}

    def _follow(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                kind, value = self._receive.recv()
                if kind == "stage":
                    self.stage, self._left = value
                elif kind == "result":
                    self.result = value
                else:
                    self.error = self.error or value
        self._process.join()
        if self.result is None and not self.error:
            self.error = f"The process ended without a result (exit code {self._process.exitcode})."
        self._ended = time.monotonic()


class _SentProgress:
    """Progress that sends the current stage and the remaining time of all of them."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.name, self.sent = connection, "starting", 0.0
        self.estimate = TimeEstimate()

    def __call__(self, done: int, total: int) -> None:
        self.estimate.update(done, total)
        if time.monotonic() - self.sent > 0.2:
            self._send()

    def stage(self, name: str) -> _SentProgress:
        self.name = name
        self.estimate.begin(name)
        self._send()
        return self

    def expect(self, seconds: Mapping[str, float]) -> None:
        self.estimate.expect(seconds)

    def _send(self) -> None:
        self.sent = time.monotonic()
        self.connection.send(("stage", (self.name, self.estimate.seconds_left())))


def _send_work(connection: Connection, work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> None:
    """In the new process: do the work and send what comes of it."""
    try:
        connection.send(("result", work(_SentProgress(connection), *arguments)))
    except InputError as error:
        connection.send(("error", str(error)))
    except Exception as error:  # a bug: the page shows it, the terminal has the traceback
        connection.send(("error", f"{type(error).__name__}: {error}. Please report this as a bug."))
        raise


def match_job(progress: Progress, a: Path, b: Path, out: Path) -> dict[str, Any]:
    """Match two files and write the result with its page; what the page of the application shows of it."""
    from acnn.runs.match_files import match_files
    from acnn.viewer.match_page import FileMatch, write_match_page

    kept: list[FileMatch] = []
    barycentric = isinstance(load(b), Mesh)
    facts = match_files(a, b, None, out, barycentric=barycentric, progress=progress, keep=kept.append)
    for found in kept:
        write_match_page(found, out / "match.html")
    return {name: facts[name] for name in ("verdict", "mean_confidence", "notices", "route")} | {"at": time.time()}


def paint_job(progress: Progress, a: Path, b: Path, out: Path) -> dict[str, Any]:
    """Transfer the texture of B to A along the map in a folder."""
    from acnn.runs.transfer import transfer_files

    begin_stage(progress, "transferring the texture")
    transfer_files(out, b, a, out / PAINTED, what="texture", force=True)
    return {"painted": True}


class Application:
    """Uploaded shapes, the job at work, and the requests of the page.

    Parameters
    ----------
    folder : Path
        For uploads and results.
    token : str
        That every request must carry.
    """

    def __init__(self, folder: Path, token: str) -> None:
        self.folder, self.token = folder, token
        self.address = ""  # host and port, known once the server listens
        self.job: Job | None = None
        self.matched: Job | None = None  # the last match, which stays when its texture is transferred
        for side in SIDES:
            (folder / side).mkdir()

    @property
    def out(self) -> Path:
        """Folder of the result."""
        return self.folder / "result"

    def shape_of(self, side: str) -> Path | None:
        """The uploaded shape of a side, without the files beside it."""
        return next((path for path in sorted((self.folder / side).iterdir()) if format_by_name(path)), None)

    def status(self) -> dict[str, Any]:
        """What the page shows."""
        names = {side: sorted(path.name for path in (self.folder / side).iterdir()) for side in SIDES}
        results = [name for name in RESULTS if (self.out / name).is_file()]
        job = None if self.job is None else self.job.as_dict()
        match = None if self.matched is None or self.matched.running else self.matched.result
        return {"files": names, "job": job, "match": match, "results": results}

    def clear(self, side: str) -> None:
        """Remove the files of a side."""
        for path in (self.folder / side).iterdir():
            path.unlink()

    def use_sample(self) -> None:
        """Put two built-in humans in place of uploaded shapes."""
        from acnn.runs.sample import write_sample

        self.check_idle()
        for side in SIDES:
            self.clear(side)
        with tempfile.TemporaryDirectory() as name:
            write_sample(Path(name) / "sample")
            for side, files in (("a", ("A.ply",)), ("b", ("B.obj", "B.mtl", "B.png"))):
                for file in files:
                    (self.folder / side / file).write_bytes((Path(name) / "sample" / file).read_bytes())

    def match(self) -> None:
        """Start matching the two shapes.

        Raises
        ------
        InputError
            Where one is missing, or a job is running.
        """
        a, b = self._shapes()
        (self.out / PAINTED).unlink(missing_ok=True)
        self.job = self.matched = Job(match_job, a, b, self.out)

    def paint(self) -> None:
        """Start transferring the texture of B to A along the map.

        Raises
        ------
        InputError
            Where there is no map, or a job is running.
        """
        a, b = self._shapes()
        if not (self.out / "map.npz").is_file():
            raise InputError("Match the shapes first.")
        self.job = Job(paint_job, a, b, self.out)

    def check_idle(self) -> None:
        """Raise InputError while a job is running."""
        if self.job is not None and self.job.running:
            raise InputError("The last one is still running: wait, or cancel it.")

    def _shapes(self) -> tuple[Path, Path]:
        self.check_idle()
        a, b = self.shape_of("a"), self.shape_of("b")
        if a is None or b is None:
            raise InputError("Two shapes are needed: drop a file on each side.")
        return a, b


def checked_name(name: str) -> str:
    """The name under which an upload is stored: that of a shape, or of a file beside one.

    Raises
    ------
    InputError
        Where it is a path, hidden, too long, or of another kind.
    """
    if not re.fullmatch(r"[^/\\:*?\"<>|\x00-\x1f]{1,120}", name) or name.startswith("."):
        raise InputError("The name of the file cannot be used here: rename it.")
    path = Path(name)
    if format_by_name(path) is None and path.suffix.lower() not in BESIDE:
        raise InputError(f"{name}: is neither a shape (PLY, OBJ, OFF, STL, glTF, XYZ, NPY) nor a material or image.")
    return name


def asgi_app(application: Application) -> Starlette:
    """The requests of the page, each checked first.

    Parameters
    ----------
    application : Application

    Returns
    -------
    Starlette
        Application for an ASGI server.
    """
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse
    from starlette.routing import Route

    async def guard(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        here = (application.address, application.address.replace(LOOPBACK, "localhost"))
        origin = request.headers.get("origin")
        if request.headers.get("host") not in here:
            return PlainTextResponse("This server answers on its own address only.", 403)
        if origin is not None and origin.removeprefix("http://") not in here:
            return PlainTextResponse("Requests of other pages are refused.", 403)
        token = request.headers.get("x-acnn-token") or request.query_params.get("token", "")
        if not secrets.compare_digest(token.encode(), application.token.encode()):
            return PlainTextResponse("The address must contain the token that 'acnn app' printed.", 403)
        try:
            response = await answer(request)
        except InputError as error:
            response = JSONResponse({"error": str(error)}, 400)
        response.headers.update(
            {
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
                "Cross-Origin-Resource-Policy": "same-origin",
                "Content-Security-Policy": "frame-ancestors 'self'",
            }
        )
        return response

    async def page(request: Request) -> Response:
        return HTMLResponse(app_page(application.token))

    async def status(request: Request) -> Response:
        return JSONResponse(application.status())

    async def upload(request: Request) -> Response:
        side, name = request.path_params["side"], checked_name(request.path_params["name"])
        if side not in SIDES:
            return JSONResponse({"error": "There are two sides, a and b."}, 404)
        application.check_idle()
        folder = application.folder / side
        others = [path for path in folder.iterdir() if path.name != name]
        if len(others) >= MAX_FILES:
            raise InputError(f"A shape has at most {MAX_FILES} files.")
        room = MAX_BYTES - sum(path.stat().st_size for path in others)
        part = application.folder / f"{secrets.token_hex(8)}.part"
        try:
            with part.open("wb") as stream:
                async for chunk in request.stream():
                    room -= len(chunk)
                    if room < 0:
                        raise InputError(f"{name}: more than {MAX_BYTES >> 20} MB for one shape. Use 'acnn match'.")
                    stream.write(chunk)
            if format_by_name(Path(name)):  # a new shape takes the place of the old one
                for path in others:
                    if format_by_name(path):
                        path.unlink()
            part.replace(folder / name)
        finally:
            part.unlink(missing_ok=True)
        return JSONResponse(application.status())

    async def clear(request: Request) -> Response:
        application.check_idle()
        if request.path_params["side"] in SIDES:
            application.clear(request.path_params["side"])
        return JSONResponse(application.status())

    def action(work: Callable[[], object]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            await run_in_threadpool(work)
            return JSONResponse(application.status())

        return answer

    async def result(request: Request) -> Response:
        name = request.path_params["name"]
        path = application.out / name
        if name not in RESULTS or not path.is_file():
            return PlainTextResponse("There is no such file.", 404)
        shown = name == "match.html" and "download" not in request.query_params
        return FileResponse(path, media_type=RESULTS[name], filename=None if shown else name)

    def cancel() -> None:
        if application.job is not None:
            application.job.cancel()

    return Starlette(
        routes=[
            Route("/", page),
            Route("/status", status),
            Route("/files/{side}/{name}", upload, methods=["PUT"]),
            Route("/files/{side}", clear, methods=["DELETE"]),
            Route("/sample", action(application.use_sample), methods=["POST"]),
            Route("/match", action(application.match), methods=["POST"]),
            Route("/paint", action(application.paint), methods=["POST"]),
            Route("/cancel", action(cancel), methods=["POST"]),
            Route("/result/{name}", result),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
    )


@contextmanager
def serve_app(port: int | None = None) -> Iterator[str]:
    """Serve the application from a thread until the block ends.

    Parameters
    ----------
    port : int or None
        None takes 8090 or, where that is in use, any free one; 0 any free one.

    Yields
    ------
    str
        The address to open, with the token.

    Raises
    ------
    InputError
        Where the extra `app` is not installed, or the port cannot be used.
    """
    try:
        import uvicorn
        from starlette.applications import Starlette  # noqa: F401
    except ImportError as error:
        raise InputError("'acnn app' needs the extra [app]: pip install 'acnn[app]'.") from error
    sock = _listening(port)
    with tempfile.TemporaryDirectory(prefix="acnn-app-") as name:
        application = Application(Path(name), secrets.token_urlsafe(24))
        application.address = f"{LOOPBACK}:{sock.getsockname()[1]}"
        config = uvicorn.Config(
            asgi_app(application),
            log_level="error",
            limit_concurrency=32,
            timeout_keep_alive=5,
            h11_max_incomplete_event_size=1 << 16,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        try:
            yield f"http://{application.address}/?token={application.token}"
        finally:
            if application.job is not None:
                application.job.cancel()
            server.should_exit = True
            thread.join(timeout=10)
            sock.close()


def _listening(port: int | None) -> Any:
    """A socket that listens on the loopback address."""
    import socket

    for candidate in (PORT, 0) if port is None else (port,):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError, OverflowError):
            sock.bind((LOOPBACK, candidate))
            sock.listen(64)
            return sock
        sock.close()
    raise InputError(f"Port {port} cannot be used. Choose another with --port, or leave it out.")
