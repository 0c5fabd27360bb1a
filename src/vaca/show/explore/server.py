"""The explorer's server: one page, a few questions, for a browser on this machine.

It answers only under an address that holds a secret token, only to requests that name this host,
and serves no files but its own. A request that is wrong in any way gets a short refusal.
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vaca.errors import VacaError
from vaca.show.explore.session import Session
from vaca.show.pages import render, template

#: The longest question: settings of a table with thousands of columns stay far below it.
MOST_BYTES = 1_000_000
QUESTIONS = ("start", "person", "population", "effect", "graph", "check", "save", "refit", "status")
_FILES = {
    "": ("explore.html", "text/html"),
    "explore.css": ("page.css", "text/css"),
    "explore.js": ("explore.js", "text/javascript"),
    "ladder.js": ("ladder.js", "text/javascript"),
}
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def new_token() -> str:
    """A secret for the address of one session."""
    return secrets.token_urlsafe(24)


def make_app(session: Session, token: str, hosts: set[str]) -> ASGIApp:
    """The explorer as an ASGI application.

    Parameters
    ----------
    session : Session
    token : str
        The first part of every path that is answered.
    hosts : set of str
        The Host headers that are answered, with their port. A page of another site that tricks a
        browser into asking (DNS rebinding) has another.
    """

    async def page(request: Request) -> Response:
        name, kind = _FILES[request.path_params.get("name", "")]
        text = render(name) if name.endswith(".html") else template(name)
        return Response(text, media_type=f"{kind}; charset=utf-8")

    async def ask(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in QUESTIONS:
            raise HTTPException(404)
        if request.headers.get("content-type", "").split(";")[0] != "application/json":
            raise HTTPException(415)  # and no form of another site has this type
        asked = await _json(request)
        try:
            # In a thread, so that a long question does not hold up the others.
            answer = await run_in_threadpool(getattr(session, name), asked)
        except VacaError as error:
            return JSONResponse({"error": str(error)}, status_code=422)
        return JSONResponse(answer)

    async def refuse(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return PlainTextResponse(_WORDS.get(status, "The request was refused."), status)

    names = [name for name in _FILES if name]
    app = Starlette(
        routes=[
            Route("/", page, methods=["GET"]),
            Route("/api/{name}", ask, methods=["POST"]),
            *(Route(f"/{name}", _named(page, name), methods=["GET"]) for name in names),
        ],
        exception_handlers={HTTPException: refuse, Exception: refuse},
    )
    return _Guard(app, token, hosts)


_WORDS = {
    400: "The request could not be read.",
    404: "There is nothing at this address.",
    405: "This address does not answer that method.",
    413: "The question is too long.",
    415: "Questions are asked in JSON.",
    500: "The question could not be answered.",
}


def _named(page: Any, name: str) -> Any:
    async def serve(request: Request) -> Response:
        request.path_params["name"] = name
        return await page(request)

    return serve


async def _json(request: Request) -> dict[str, Any]:
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BYTES:
                raise HTTPException(413)
    except ClientDisconnect:
        raise HTTPException(400) from None
    try:
        asked = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise HTTPException(400) from None
    if not isinstance(asked, dict):
        raise HTTPException(400)
    return asked


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


class _Guard:
    """Lets through what has the token and names this host; adds headers to every answer."""

    def __init__(self, app: ASGIApp, token: str, hosts: set[str]) -> None:
        self.app, self.token, self.hosts = app, token, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets here
        inner = self._inside(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(k.encode(), v.encode()) for k, v in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        if inner is None:
            refusal = PlainTextResponse("Open the address that `vaca explore` printed.", 403)
            await refusal(scope, receive, with_headers)
        else:
            await self.app(inner, receive, with_headers)

    def _inside(self, scope: Scope) -> Scope | None:
        """The same request without the token in front of its path; None if it is not allowed."""
        headers = [(k.lower(), v.decode("latin-1")) for k, v in scope["headers"]]
        host = [v for k, v in headers if k == b"host"]
        origin = [v for k, v in headers if k == b"origin"]
        if len(host) != 1 or host[0].lower() not in self.hosts:
            return None
        if any(o.partition("://")[2].lower() not in self.hosts for o in origin):
            return None
        first, slash, rest = scope["path"].removeprefix("/").partition("/")
        if not secrets.compare_digest(first.encode(), self.token.encode()) or not slash:
            return None
        return {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode(), "root_path": ""}


def serve(session: Session, host: str = "127.0.0.1", port: int = 0, *, started: Any = None) -> None:
    """Serve until interrupted; `started` is called with the address once it answers."""
    import socket

    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise VacaError(f"--host {host} --port {port}: {error.strerror}; choose another") from None
    port = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    token = new_token()
    hosts = {f"{shown}:{port}", f"localhost:{port}", f"127.0.0.1:{port}"}
    config = uvicorn.Config(
        make_app(session, token, hosts),
        log_config=None,
        log_level="critical",  # a stranger's bad request is no news for the terminal
        access_log=False,
        server_header=False,
        limit_concurrency=64,
        timeout_keep_alive=5,
    )

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if started is not None:
                started(f"http://{shown}:{port}/{token}/", self)

    Server(config).run([listener])
