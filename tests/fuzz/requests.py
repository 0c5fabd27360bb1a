"""Requests to the explorer: raw bytes through its HTTP parser, and questions of any shape.

No socket is opened: the bytes go to the protocol that the server would hand them to.
"""

from __future__ import annotations

import asyncio
import functools
import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.fuzz import models
from tests.fuzz.changes import VALUES, bytes_changed, json_changed
from vaca.errors import VacaError

TOKEN, HOST = "token-of-this-session", "127.0.0.1:8000"
EDGES = [["sex", "visits"], ["sex", "income"], ["visits", "income"]]
SET = {"visits": {"value": 4}, "sex": {"level": 1}, "income": {"shift": -2.5}}
FILTER = {"sex": {"levels": [0, 1]}, "income": {"low": 0, "high": 1e6}}
GOOD: list[tuple[str, Any]] = [
    ("start", {}),
    ("person", {"row": 3, "settings": SET}),
    ("population", {"settings": {"visits": {"shift": 1}}, "filter": FILTER}),
    ("effect", {"outcome": "income", "settings": {"visits": {"value": 4}}, "filter": FILTER}),
    ("effect", {"outcome": "sex", "level": 0, "settings": {"visits": {"value": 4}}}),
    ("graph", {"edges": EDGES}),
    ("save", {"edges": EDGES[1:]}),
    ("refit", {"edges": EDGES[:1]}),
    ("status", {}),
]
PATHS = ("", "explore.css", "../../etc/passwd", "api/../ladder.js", "%2e%2e/page.css", "api/_fit",
         "api/__class__", "api/check/", "\x00", "api/" + "x" * 5000)  # fmt: skip
#: What each kind of answer may be. 500 is an error that nobody foresaw.
FINE = {200, 307, 400, 403, 404, 405, 413, 415, 422, 503}


class _Line(asyncio.Transport):
    """Where the server writes to: it keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.closed = b"", False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 5), "sockname": ("127.0.0.1", 8000)}.get(name, default)

    def set_protocol(self, protocol: Any) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


@functools.cache
def _server() -> tuple[asyncio.AbstractEventLoop, Any]:
    """A loop, and a function that makes a protocol for a new connection."""
    import uvicorn
    from uvicorn.server import ServerState

    from vaca.show.explore.server import make_app
    from vaca.show.explore.session import Session

    model = models.fitted("AdditiveNoise")
    file = models.PLACE / "saved.txt"
    session = Session(model, models.table(), graph_file=file, fit=lambda model, *_: model)
    app = make_app(session, TOKEN, {HOST})
    config = uvicorn.Config(app, log_config=None, log_level="critical", access_log=False)
    config.load()
    loop, state = asyncio.new_event_loop(), ServerState()
    made: Any = config.http_protocol_class
    return loop, lambda: made(config=config, server_state=state, app_state={}, _loop=loop)


def sent(raw: bytes) -> bytes:
    """What the server answers to these bytes on a new connection, before it closes or waits."""
    if not raw:
        return b""  # nothing arrives, and so nothing is called
    loop, connect = _server()

    async def exchange() -> bytes:
        protocol, line = connect(), _Line()
        protocol.connection_made(line)
        protocol.data_received(raw)
        while (cycle := getattr(protocol, "cycle", None)) and not cycle.response_complete:
            if not cycle.more_body or line.closed:
                await asyncio.sleep(0)
                continue
            protocol.connection_lost(None)  # it waits for the rest of the body: hang up
            await asyncio.sleep(0)
            break
        for task in [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]:
            await task
        if not line.closed:
            protocol.connection_lost(None)
        return line.written

    # A thread of its own: a browser's test in this process may have left a loop running here.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(loop.run_until_complete, exchange()).result()


def request(path: str, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    """The bytes of a question."""
    given = {
        "Host": HOST,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    lines = [f"POST {path} HTTP/1.1", *(f"{k}: {v}" for k, v in given.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def explorer_requests(rng: random.Random) -> None:
    """Any bytes, any question: an answer or a clean refusal; a stranger gets nothing."""
    name, asked = rng.choice(GOOD)
    path, stranger = f"/{TOKEN}/api/{name}", False
    way = rng.randrange(5)
    if way == 0:
        raw = bytes_changed(request(path, json.dumps(asked).encode()), rng)
    elif way == 1:
        raw = request(path, bytes_changed(json.dumps(asked).encode(), rng))
    elif way == 2:
        raw = request(path, json.dumps(json_changed(asked, rng)).encode())
    elif way == 3:
        # A value of any kind in a place of any name.
        key = rng.choice(["row", "settings", "filter", "edges", "outcome", "level"])
        inner = rng.choice([*VALUES, {rng.choice(["sex", "visits", "income"]): rng.choice(VALUES)}])
        name = rng.choice(["person", "population", "effect", "graph", "check"])
        raw = request(
            f"/{TOKEN}/api/{name}", json.dumps({**rng.choice(GOOD)[1], key: inner}).encode()
        )
    else:
        stranger = True
        wrong = rng.choice(
            [
                (rng.choice([TOKEN[:-1], TOKEN + "x", "", "..", "api", "%74oken"]), {}),
                (TOKEN, {"Host": rng.choice(["evil.example", "127.0.0.1", HOST + "0", ""])}),
                (TOKEN, {"Origin": rng.choice(["http://evil.example", "null", f"http://{HOST}x"])}),
            ]
        )
        raw = request(f"/{wrong[0]}/{rng.choice(PATHS)}", b"{}", wrong[1])
    answer = sent(raw)
    status = int(answer[9:12]) if answer else 0
    assert status in {0, *FINE}, f"status {status}"
    assert b"Traceback" not in answer, "a traceback in the answer"
    assert b"root:" not in answer, "a file of this machine in the answer"
    if stranger:
        assert status in (400, 403), f"a stranger got {status}"
    if status != 200:
        raise VacaError(f"refused with {status}")
