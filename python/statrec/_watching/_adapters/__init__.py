"""Which modules of a model are normalizations, and how each kind is recorded.

One file and one row for each kind of module. The first row that fits a module describes its site.
docs/python-watch.md has the rows as table() prints them.
"""
import collections

from . import batch, custom, named, papers, probed, row, sample

# fits(module): whether the row is for it. describe(site, module): fills the site; False: it cannot
# be recorded. modules, features, running: cells of the table in the documentation.
Adapter = collections.namedtuple("Adapter", "fits describe modules norm features running")

ROWS = [Adapter(*part.ROW) for part in (custom, papers, batch, sample, row, named, probed)]


def of(module):
    """The row of a module, or None if it is no normalization."""
    return next((one for one in ROWS if one.fits(module)), None)


def table():
    """The rows as a table of docs/python-watch.md."""
    lines = ["| module | norm, family | features | running statistics |", "|---|---|---|---|"]
    lines += [f"| {one.modules} | {one.norm} | {one.features} | {one.running} |" for one in ROWS]
    return "\n".join(lines) + "\n"
