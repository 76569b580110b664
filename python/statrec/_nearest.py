"""A hint for a name that is not known."""
from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """"did you mean 'NAME'?" with the known name that is most like it, or ""."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean '{near[0]}'?" if near else ""
