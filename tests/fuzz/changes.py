"""Changes of bytes, text and JSON, as accidents and hostile hands make them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from typing import Any

NUMBERS = (0, -1, 1, 2, 3.5, 1e300, -1e300, 10**9, 10**12, 10**40, 2**63, float("nan"))
VALUES: tuple[Any, ...] = (
    *NUMBERS,
    float("inf"),
    True,
    None,
    "",
    "x",
    "\ud800",
    "\x00",
    "a" * 5_000,
    "../../etc/passwd",
    "os.system",
    [],
    {},
    [1],
    [[1]],
    {"a": 1},
    [None] * 3,
)
PIECES = (
    b"\x00", b"\xff", b"[", b"]", b"{", b"}", b'"', b"'", b"\\", b",", b":", b"=", b"->", b"\n",
    b"#", b";", b"$", b"nan", b"1e999", b"-0", b"\xef\xbb\xbf", b"\xff\xfe", b"9" * 50, b"[" * 60,
)  # fmt: skip

TOML = (
    "0", "-1", "1", "2", "3.5", "1e300", "inf", "nan", "-nan", "9" * 30, "9" * 5_000, "1e9999",
    "true", "false", '""', '"x"', "\'a\'", '"\\u0000"', '"\\U0010ffff"', '"../../etc/passwd"',
    "[]", "[[]]", "[1, 2]", '["f", "m"]', '["a", "a"]', "[nan, nan]", "[1, true]", "[[1], [2]]",
    "{}", "{a = 1}", "2020-01-01", "2020-13-45", "25:00:00", "[" * 60 + "]" * 60, "0xff", "1_0",
    "{a = " * 60 + "1" + "}" * 60, '"continuous"', '"count"', '"binary"', '"ordinal"', '"auto"',
    '"flow"', '"vaca"', '"composite"', '"cuda:99"', '"model"', "a", "=", "\ud800",
)  # fmt: skip


def bytes_changed(data: bytes, rng: random.Random) -> bytes:
    """One to four places flipped, cut, doubled or filled with signs that readers look for."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        size = len(data)
        a, b = sorted((rng.randint(0, size), rng.randint(0, size)))
        what = rng.randrange(7)
        if what == 0 and size:
            place = rng.randrange(size)
            data = data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]
        elif what == 1:
            data = data[:a] + data[min(b, a + 40) :]
        elif what == 2:
            data = data[:a]
        elif what == 3:
            data = data[:a] + data[a:b][:200] * rng.randint(2, 4) + data[b:]
        elif what == 4:
            data = data[:a] + rng.choice(PIECES) + data[a:]
        elif what == 5:
            data = data[:a] + rng.randbytes(rng.randint(1, 8)) + data[a:]
        else:
            data = data[:a] + rng.choice(PIECES) + data[min(b, a + 4) :]
    return data


def settings_changed(text: str, keys: Sequence[str], rng: random.Random) -> bytes:
    """The same TOML with values of any kind at one to three keys, known, new or repeated."""
    lines = text.splitlines()
    for _ in range(rng.randint(1, 3)):
        where = rng.randrange(len(lines))
        key = rng.choice([*keys, lines[where].partition("=")[0].strip() or "x"])
        made = f"{key} = {rng.choice(TOML)}"
        if "=" in lines[where] and rng.random() < 0.7:
            lines[where] = made
        else:
            lines.insert(where, rng.choice([made, f"[{key}]", f"[[{key}]]", f'"{key}"."y" = 1']))
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def json_changed(value: Any, rng: random.Random) -> Any:
    """The same JSON with one to three places set, removed, renamed, doubled or swapped."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.randint(1, 3)):
        where = rng.choice(list(_places(value)) or [None])
        if where is None:
            return any_value(rng)
        parent, key = where
        what = rng.randrange(6)
        if what < 3:
            parent[key] = _near(parent[key], rng) if what else any_value(rng)
        elif what == 3:
            del parent[key]
        elif what == 4 and isinstance(parent, dict):
            parent[rng.choice(["x", "graph", "seed", *parent])] = parent.pop(key)
        elif isinstance(parent, list):
            parent.insert(rng.randint(0, len(parent)), parent[key])
            rng.shuffle(parent)
    return value


def any_value(rng: random.Random) -> Any:
    """A value of any kind, of its own: what is changed later is not changed for all."""
    return copy.deepcopy(rng.choice(VALUES))


def shuffled(value: Any, rng: random.Random) -> Any:
    """The same JSON with the keys of one or of all objects in another order."""
    if isinstance(value, list):
        return [shuffled(inner, rng) for inner in value]
    if not isinstance(value, dict):
        return value
    items = [(key, shuffled(inner, rng)) for key, inner in value.items()]
    if rng.random() < 0.5:
        rng.shuffle(items)
    return dict(items)


def _near(value: Any, rng: random.Random) -> Any:
    if isinstance(value, bool) or value is None:
        return any_value(rng)
    if isinstance(value, int | float):
        return rng.choice([value + 1, -value, value * 10, value / 3, *NUMBERS])
    if isinstance(value, str):
        return rng.choice([value[:-1], value + "x", value.upper(), "", "continuous", "float32"])
    return any_value(rng)


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items) if isinstance(value, dict | list) else []:
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)
