# pandas' own annotations are unions so wide (a Series may be an array, a number, NA) that a checker
# reports every second line that uses them. Here everything of pandas is Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
