"""The run file that watch(resume=True) continues: which one, after which step, and whether its sites are the model's."""
from __future__ import annotations

import os
from types import SimpleNamespace

from .._library import Error, recorded_here, recorded_twice


def checked(path, start, sites):
    """The rows to continue: source, the file to copy; its last step, widths by site and metrics; start, the steps
    before this run. path: the run's; start: as given, or None; sites: the model's.

    Error for a file that is not there, cannot be read, or has other sites."""
    if recorded_here(path):
        raise recorded_twice(path)
    found = _found(path)
    found.widths = _agreed(found.source, found.sites, sites)
    found.start = found.last if start is None else start
    return found


def _found(path):
    """The run in PATH.part, which statrec resume reads first, or in PATH."""
    names = [name for name in (path + ".part", path) if os.path.exists(name)]
    if not names:
        raise Error(f"{path}: resume=True: there is no such run file", "io", "leave resume out to begin a run")
    if len(names) > 1:
        try:
            found = _read(names[0])
        except Error:
            return _read(path)
        return found if found.sites else _read(path)
    return _read(names[0])


def _read(path):
    from .._file import open as open_file
    with open_file(path) as file:
        metrics = [(one.name, one.unit, one.definition, one.better) for one in file.metrics.values()]
        return SimpleNamespace(source=path, last=max(map(int, file.steps["step"]), default=0),
                               sites=list(file.sites.values()), metrics=metrics)


def _agreed(path, known, sites):
    """{name: features} of the file's sites; Error if they differ from the model's. A tensor of statrec.tap has no
    module: its site is known when it is given."""
    here, there = {site.name: site for site in sites}, {site.name: site for site in known}
    gone = [site.name for site in known if site.name not in here and site.norm != "none"]
    new = [name for name, site in here.items() if site.width is not None and name not in there]
    other = [f"{name!r} is {_shown(there[name])} in the file and {_shown(site)} in the model"
             for name, site in here.items()
             if name in there and (site.norm, site.width or there[name].width) != (there[name].norm, there[name].width)]
    parts = [f"{_named(names)} only in the {where}" for names, where in ((gone, "file"), (new, "model")) if names]
    if parts or other:
        raise Error(f"{path}: resume=True: its sites are not the model's: {'; '.join(parts + other[:1])}", "usage",
                    "resume with the same model and choice of sites")
    return {site.name: site.width for site in known}


def _shown(site):
    return f"{site.norm} of {site.width or 'unknown'} features"


def _named(names):
    return ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
