"""The server of the page: on 127.0.0.1 alone, below a token in the address.

The token is the first part of every path, also of the websocket and of static files: what asks
without it gets 404. Nothing but the files of the command line can be asked for.
"""
from __future__ import annotations

import os
import secrets
import socket
import stat
import sys
import tempfile
import webbrowser
from html import escape
from typing import Any, Optional, Sequence

HOST = "127.0.0.1"
ORIGINS = [HOST, "localhost"]  # pages that may open the websocket; any port, for an ssh tunnel


def free_port() -> int:
    """A free port of 127.0.0.1."""
    with socket.socket() as one:
        one.bind((HOST, 0))
        return one.getsockname()[1]


def address(port: int, token: str) -> str:
    """The address of the page."""
    return f"http://{HOST}:{port}/{token}/"


def make_server(paths: Sequence[Any], port: int = 0, token: Optional[str] = None) -> Any:
    """(server, address) of Panel's, not started yet. Raises OSError: the port is taken."""
    import panel
    from bokeh.settings import settings

    from .page import CSS, Page, start
    from .runs import Runs
    from .verdict import Watch

    panel.extension("tabulator", raw_css=[CSS], notifications=False)
    settings.allowed_ws_origin = ORIGINS
    token = secrets.token_urlsafe(24) if token is None else token
    port = port or free_port()
    runs, watch = Runs(paths), Watch()

    def page():
        location = panel.state.location
        panel.state.curdoc.template_variables["app_favicon"] = "data:,"
        one = Page(runs, watch, location.search if location else "", location,
                   panel.state.curdoc)
        one.refresh()
        browser = panel.state.browser_info

        def loaded():  # Panel 1.9 does not send earlier changes
            if browser is not None:
                one.darken(bool(browser.dark_mode))
                browser.param.watch(lambda event: one.darken(bool(event.new)), "dark_mode")
            start(one)
        panel.state.onload(loaded)
        return one.layout

    server = panel.serve({"/": page}, address=HOST, port=port, prefix=f"/{token}", show=False,
                         start=False, title="statrec", websocket_origin=[f"{HOST}:{port}"],
                         verbose=False, admin=False, ico_path="none")
    return server, address(port, token)


def open_browser(url: str) -> str:
    """Opens the page by a file that only its owner can read: command lines are seen by everybody.

    Returns the path of the file.
    """
    handle, path = tempfile.mkstemp(prefix="statrec-view-", suffix=".html")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(url)}">')
    os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
    webbrowser.open(f"file://{path}")
    return path


def run(paths: Sequence[Any], port: int, browser: bool) -> int:
    """Serves until Ctrl-C. Returns the exit status."""
    server, url = make_server(paths, port)
    server.start()
    print(f"statrec view: {url}\nstatrec view: Ctrl-C ends it", flush=True)
    opened = open_browser(url) if browser else None
    try:
        server.io_loop.start()
    except KeyboardInterrupt:
        print("statrec view: ended", file=sys.stderr)
    finally:
        server.stop()
        if opened:
            os.unlink(opened)
    return 0
