"""`statrec view`: an interactive page of runs, served on 127.0.0.1 or shown in a notebook.

bins.py reduces, source.py reads, state.py is the address, commands.py the commands of pictures,
panels/ has one panel per file and their table, export.py writes them into a file. Importing it
loads none of its requirements.
"""
from __future__ import annotations

import importlib
from typing import Any

NEEDED = 'pip install "statrec[view]" (bokeh, panel, h5py)'


def lacking() -> str:
    """The first package that the page needs and that does not import, or ""."""
    for name in ("numpy", "pandas", "bokeh", "panel"):
        try:
            importlib.import_module(name)
        except ImportError:
            return name
    return ""


def show(*paths: Any) -> Any:
    """The page of runs as an object of Panel's, which a notebook shows (statrec.show)."""
    missing = lacking()
    if missing:
        raise ImportError(f"statrec.show: {missing} does not import; {NEEDED}")
    import panel

    from .page import Page, start
    from .runs import Runs
    from .verdict import Watch
    panel.extension("tabulator", inline=True)
    page = Page(Runs(paths), Watch())
    page.refresh()
    start(page)
    return page.layout
