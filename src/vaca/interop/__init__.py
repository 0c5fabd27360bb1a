"""Bridges to other packages. Each is an optional extra: `pip install 'vaca[dowhy]'`."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["dowhy"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"vaca.interop.{name}")
    raise AttributeError(f"module 'vaca.interop' has no attribute {name!r}")
