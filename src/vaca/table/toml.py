"""Settings in files: `schema.toml` for the kinds of columns, and a config for `vaca fit`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vaca.errors import SchemaError, VacaError, did_you_mean, shorten
from vaca.graph.parts import check_path
from vaca.table.schema import KINDS, Column, Kind, Schema

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["read_config", "read_schema", "schema_text"]

_KEYS = ("kind", "levels", "unit", "other")
_SCHEMA_HEAD = """\
# What kind each column is. Change what is wrong; columns left out are inferred from the data.
#
# kind = "continuous"    a measured number
#        "count"         whole numbers, 0 or more: children, visits
#        "binary"        two levels
#        "categorical"   several levels without an order
#        "ordinal"       several levels with an order: list them from low to high
# levels = [...]         the values a binary, categorical or ordinal column may take
# unit = "euro"          of numbers: shown with them where an answer is put in words
"""


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file; an error names the file and what is wrong with it."""
    path = check_path(path)
    if not path.exists():
        raise VacaError(f"{path}: no such file")
    if path.is_dir():
        raise VacaError(f"{path} is a folder; give a .toml file")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise VacaError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except RecursionError:
        raise VacaError(f"{path}: not TOML that can be read: nested too deeply") from None
    except ValueError as error:  # also numbers of thousands of digits
        raise VacaError(f"{path}: not TOML: {error}") from None
    except OSError as error:
        raise VacaError(f"{path}: {error.strerror or error}") from None


def read_schema(path: str | Path) -> dict[str, Kind | Column]:
    r"""The kinds of columns that a `schema.toml` sets, for `Schema.infer` and engines.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "schema.toml"
    >>> _ = path.write_text('[size]\nkind = "ordinal"\nlevels = ["small", "large"]\n')
    >>> read_schema(path)["size"].levels
    ('small', 'large')
    """
    result: dict[str, Kind | Column] = {}
    for name, given in read_toml(path).items():
        if not isinstance(given, Mapping):
            raise SchemaError(
                f'{path}: write a table for each column: [{name}] and below it kind = "..."'
            )
        for key in given:
            if key not in _KEYS:
                raise SchemaError(
                    f"{path}, column {name!r}: unknown key {key!r}; {did_you_mean(key, _KEYS)}"
                )
        kind = given.get("kind")
        if kind not in KINDS:
            problem = f"unknown kind {shorten(kind)}" if "kind" in given else "the kind is missing"
            raise SchemaError(f"{path}, column {name!r}: {problem}; {did_you_mean(kind, KINDS)}")
        levels, unit, other = given.get("levels"), given.get("unit", ""), given.get("other", "")
        if not isinstance(other, str) or (other and levels is None):
            raise SchemaError(f"{path}, column {name!r}: other is one of the column's `levels`")
        if unit and (kind not in ("continuous", "count") or not isinstance(unit, str)):
            raise SchemaError(f"{path}, column {name!r}: unit is a text, of a column of numbers")
        if levels is None:
            result[name] = Column(kind, unit=unit) if unit else kind
            continue
        if kind in ("continuous", "count"):
            raise SchemaError(f"{path}, column {name!r}: a {kind} column has no levels")
        if not isinstance(levels, list) or not levels:
            raise SchemaError(f"{path}, column {name!r}: levels is a list such as [0, 1]")
        try:
            result[name] = Column(kind, tuple(levels), other=other)
        except SchemaError as error:
            raise SchemaError(f"{path}, column {name!r}: {error}") from None
    return result


def schema_text(schema: Schema, left_out: Mapping[str, str] | None = None) -> str:
    """A commented `schema.toml` that says what was inferred; `left_out` are column -> reason."""
    lines = [_SCHEMA_HEAD]
    for name, column in schema.items():
        lines.append(f"[{_key(name)}]")
        lines.append(f'kind = "{column.kind}"')
        if column.unit:
            lines.append(f"unit = {_value(column.unit)}")
        if column.discrete:
            lines.append(f"levels = [{', '.join(_value(v) for v in column.levels)}]")
            if column.other:
                lines.append(f"other = {_value(column.other)}  # all that are not listed")
        elif column.low is not None:
            days = " (dates, counted in days)" if column.dates else ""
            lines.append(
                f"# observed: {column.shown(column.low)} to {column.shown(column.high)}{days}"
            )
        lines.append("")
    for name, reason in (left_out or {}).items():
        lines.append(f"# {name}: left out, {reason}")
    return "\n".join(lines).rstrip() + "\n"


def _key(name: str) -> str:
    plain = name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name)
    return name if plain else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False)


def read_config(path: str | Path, sections: Mapping[str, Iterable[str] | None]) -> dict[str, dict]:
    """The settings of a config file, checked against the keys that each section may have.

    Parameters
    ----------
    path : path
        A TOML file.
    sections : mapping of str to iterable of str or None
        Section -> its keys (None: any); the section "" holds the keys at the top of the file.

    Returns
    -------
    dict of section -> dict of key -> value, with every section present.
    """
    result: dict[str, dict] = {section: {} for section in sections}
    top = list(sections.get("") or ())
    tops = [*top, *(s for s in sections if s)]
    for name, value in read_toml(path).items():
        if name in sections and name:
            if not isinstance(value, Mapping):
                raise VacaError(f"{path}: {name} is a section: write [{name}] and keys below it")
            known = sections[name]
            known = None if known is None else list(known)
            for key, inner in value.items():
                if known is not None and key not in known:
                    raise VacaError(
                        f"{path}, [{name}]: unknown key {key!r}; {did_you_mean(key, known)}"
                    )
                result[name][key] = inner
        elif name in top:
            result[""][name] = value
        else:
            raise VacaError(f"{path}: unknown key {name!r}; {did_you_mean(name, tops)}")
    return result
