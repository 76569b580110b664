"""Run files read by h5py, where libstatrec does not load: the same answers as _native_reader.py.

Reads finished files, and committed rows of a killed writer. It verifies no checksums, and reads no
backup copy of damaged parts.
"""
import ctypes
import math
import os

from .._abi import FINALS, PAIRS
from .._library import Error

FORMAT, VERSION = "statrec-run", 1  # SR_FORMAT_NAME, SR_FORMAT_VERSION

# The order of the tables of statrec/format.h, which no file has.
SCALARS = ("rows nonfinite dist_mu dist_sigma dist_sigma2 dist_psi dist_psi2 tid_mean tid_var g_mu "
           "g_sigma2 g_psi2 g_sigma2_rowmean g_psi2_rowmean Gamma_max row_grad_mean row_grad_var "
           "row_g_mean row_g_var row_exact_mean row_exact_var rel_sigma2 rel_psi rel_psi2 dx_norm "
           "direct_norm dx_norm_bn direct_norm_bn samples padded row_free_var").split()
VECTORS = ("mu_B sigma2_B psi2_B mu sigma2 psi2 gamma sum_g sum_gx nu Gamma_t Lambda_t position_B "
           "position").split()
STEPS = "step update tokens epoch loss lr grad_norm seconds".split()

_TEXTS = ("program version command config host created git model data task loss_reduction "
          "parent").split()
_SITE_TEXTS = "name norm kind family axis uses constants".split()
_SITE_WHOLE = "offset width depth layer_scale observed merged layer_scale_own".split()

# Files of the first version tell neither what their methods are (src/runfile/site_method.c):
# norms; axis, uses, family.
_OLD_METHODS = (
    ("bn rbn", "batch", "mu,sigma2", "sigma"),
    ("brn bn-powernorm rbn-released", "batch", "mu,sigma2", "own"),
    ("pnv mabn", "batch", "psi2", "psi"),
    ("pn", "batch", "psi2", "pn"),
    ("pn-released", "batch", "psi2", "own"),
    ("ln ln-simple adanorm detach-mean detach-std detach-both", "row", "mu,sigma2", "row"),
    ("rmsnorm", "row", "psi2", "row"),
    ("groupnorm instancenorm", "sample", "mu,sigma2", "row"))
_OLD_CONSTANTS = {"detach-mean": "mu", "detach-std": "sigma2", "detach-both": "mu,sigma2"}
_OLD_SCALED = ("bn-powernorm", "pn-released")  # whose layer scale is their own

# Nor in what order and direction they have their metrics (read_metrics.c): that of texts, which
# "images" change.
_OLD_METRICS = ("bleu f1 uas las valid_ppl valid_accuracy valid_loss valid_nll valid_loss_batch "
                "valid_nll_batch valid_ppl_batch valid_accuracy_batch").split()
_OLD_IMAGES = ("valid_accuracy bleu f1 uas las valid_loss valid_nll valid_ppl valid_loss_batch "
               "valid_nll_batch valid_ppl_batch valid_accuracy_batch").split()
_OLD_MORE = ("bleu", "f1", "uas", "las", "valid_accuracy", "valid_accuracy_batch")
_OLD_UNIT = "nats per token or image"
_UNITS = {"images": "nats per image", "pairs": "nats per token"}


def _old_method(norm):
    """The method of a site with this norm in the first version."""
    method = {"axis": "-", "uses": "", "family": "none", "constants": _OLD_CONSTANTS.get(norm, ""),
              "layer_scale_own": int(norm in _OLD_SCALED)}
    for norms, axis, uses, family in _OLD_METHODS:
        if norm in norms.split():
            method.update(axis=axis, uses=uses, family=family)
    return method


def _text(value):
    """A text of an attribute or a fixed-length dataset."""
    if isinstance(value, bytes):
        return value.split(b"\0", 1)[0].decode("utf-8", "replace")
    return str(value)


def _copied(array, where):
    """Writes a contiguous array to an address."""
    ctypes.memmove(where, array.ctypes.data, array.nbytes)


def _open(h5py, path):
    """The h5py.File; after a killed writer, its committed rows."""
    try:
        return h5py.File(path, "r", locking=False)
    except OSError:
        return h5py.File(path, "r", libver="latest", swmr=True)


class Reader:
    """An open run file. Raises Error: there is no h5py, or the file is none of ours."""

    def __init__(self, path):
        try:
            import h5py
        except ImportError:
            raise Error("libstatrec does not load, and h5py is not installed", "library",
                        "pip install h5py") from None
        name = os.fsdecode(path)
        if not os.path.exists(name) and os.path.exists(name + ".part"):
            name += ".part"
        if not os.path.exists(name):
            raise Error(f"{name}: No such file or directory", "io")
        try:
            self.file = _open(h5py, name)
        except OSError as reason:
            raise Error(f"{name}: not a run file: {reason}", "format") from None
        self.path = name
        self._check()
        self._metrics, self._declared = self._read_metrics(), self._read_declared()
        self._sites = self._read_sites()
        self._info = self._read_info()

    def _check(self):
        attributes = self.file.attrs
        if _text(attributes.get("format", "")) != FORMAT:
            raise Error(f"{self.path}: HDF5, but not a run file (no attribute format = {FORMAT})",
                        "format")
        version = int(attributes.get("format_version", 0))
        if version != VERSION:
            raise Error(f"{self.path}: format_version {version}; this package reads {VERSION}",
                        "format")

    def close(self):
        """Closes the file; closing it again does nothing."""
        self.file.close()

    # -- what the run is ----------------------------------------------------------------------

    def _read_sites(self):
        group = self.file["sites"]
        count = group["name"].shape[0]
        columns = {name: [_text(value) for value in group[name][:]]
                   for name in _SITE_TEXTS if name in group}
        for name in _SITE_WHOLE:
            values = group[name][:] if name in group else [0] * count
            columns[name] = [int(value) for value in values]
        for name in ("eps", "alpha", "alpha_bwd"):
            values = group[name][:] if name in group else [math.nan] * count
            columns[name] = [float(value) for value in values]
        sites = [{name: values[i] for name, values in columns.items()} for i in range(count)]
        for site in sites:
            if "family" not in group:
                site.update(_old_method(site["norm"]))
            scaled = site["layer_scale"] > 0 and not site["layer_scale_own"]
            site["called"] = site["norm"] + ("+ls" if scaled else "")
        return sites

    def _rows(self, group, committed, optional=()):
        """Rows that every column of a group has, at most the committed ones."""
        columns = [column for name, column in self.file[group].items() if name not in optional]
        counts = [column.shape[0] for column in columns]
        return min([int(self.file[f"state/committed_{committed}"][()]), *counts])

    def _read_info(self):
        attributes, state = self.file.attrs, self.file["state"]
        info = {"path": self.path, **{name: _text(attributes[name]) for name in _TEXTS},
                "seed": int(attributes["seed"]), "threads": int(attributes["threads"]),
                "sites": len(self._sites), "width": sum(site["width"] for site in self._sites)}
        info["steps"] = min(self._rows("steps", "steps"), self._rows("scalars", "steps"))
        info["vectors"] = self._rows("vectors", "vectors")
        info["evals"] = self._rows("evals", "evals")
        for name in ("status", "reason", "weights_digest", "finished"):
            info[name] = _text(state[name][()])
        info["wall_seconds"] = float(state["wall_seconds"][()])
        info["spectra"] = (min(column.shape[0] for column in self.file["spectra"].values())
                           if "spectra" in self.file else 0)
        host = self.file["host"].attrs if "host" in self.file else {}
        info["ranks"] = _text(host.get("ranks", ""))
        pairs = self.file.get(f"final/{PAIRS[0]}")
        info["pairs"] = 0 if pairs is None else pairs.shape[1]
        return info

    def info(self):
        """dict, as File.info."""
        return dict(self._info)

    def damage(self):
        """No lines: h5py raises an error at damage."""
        return []

    def sites(self):
        """A dict of fields for each site."""
        return [dict(site) for site in self._sites]

    def _read_metrics(self):
        evals, task = self.file["evals"], _text(self.file.attrs["task"])
        old = "metrics" not in evals.attrs
        order = _OLD_IMAGES if task == "images" else _OLD_METRICS
        found = []
        for name, column in evals.items():
            if name in ("step", "epoch"):
                continue
            about = column.attrs
            unit = _text(about["unit"])
            better = ("more" if name in _OLD_MORE else "less") if old else _text(about["better"])
            found.append((order.index(name) if old else int(about["place"]), {
                "name": name, "unit": _UNITS.get(task, unit) if unit == _OLD_UNIT else unit,
                "definition": _text(about["definition"]), "better": better}))
        return [metric for _, metric in sorted(found, key=lambda pair: (pair[0], pair[1]["name"]))]

    def metrics(self):
        """A dict of name, unit, definition and better for each metric, in their order."""
        return [dict(metric) for metric in self._metrics]

    def _read_declared(self):
        found = []
        host = self.file["host"].attrs if "host" in self.file else {}
        for attribute, group, scope in (("scalars", "scalars", "site"), ("steps", "steps", "step")):
            for name in _text(host.get(attribute, "")).split("\n"):
                if name and name in self.file[group]:
                    about = self.file[group][name].attrs
                    found.append({"name": name, "unit": _text(about["unit"]),
                                  "definition": _text(about["definition"]), "scope": scope})
        return found

    def declared(self):
        """A dict of name, unit, definition and scope for each custom scalar."""
        return [dict(scalar) for scalar in self._declared]

    def names(self, group):
        """Names of the members of scalars, vectors, evals, steps or embeddings, in their order."""
        if group == "embeddings":
            return list(self.file["embeddings"]) if "embeddings" in self.file else []
        known = {"scalars": SCALARS, "vectors": VECTORS, "steps": STEPS, "evals": ["epoch"]}[group]
        names = [name for name in known if name in self.file[group]]
        if group == "evals":
            return names + [metric["name"] for metric in self._metrics]
        scope = {"scalars": "site", "steps": "step"}.get(group)
        return names + [own["name"] for own in self._declared if own["scope"] == scope]

    def has(self, group, name):
        """Whether a scalar or a vector has values."""
        column = self.file[group].get(name)
        if column is None:
            return False
        rows = self._info["steps" if group == "scalars" else "vectors"]
        return rows == 0 or column.id.get_storage_size() != 0

    def definition(self, path):
        """The definition of a dataset, or ""."""
        thing = self.file.get(path) if path.strip("/") else None
        return "" if thing is None else _text(thing.attrs.get("definition", ""))

    # -- values -------------------------------------------------------------------------------

    def read(self, group, name, site, first, count, where):
        """Writes the rows [first, first + count) of a column to an address: of one site, or all
        (-1). group: scalars, vectors, steps or evals; of the last every column is float64."""
        column = self.file[group][name]
        columns = ()
        if group == "scalars" and site >= 0:
            columns = (slice(site, site + 1),)
        elif group == "vectors" and site >= 0:
            at = self._sites[site]
            columns = (slice(at["offset"], at["offset"] + at["width"]),)
        values = column[(slice(first, first + count),) + columns]
        _copied(values.astype("f8") if group == "evals" else values, where)

    def embedding(self, name):
        """(rows, cols, values of a record, records, method)."""
        group = self.file[f"embeddings/{name}"]
        rows, cols = (int(group.attrs[key]) for key in ("rows", "cols"))
        records = min(group["step"].shape[0], group["singular_values"].shape[0])
        return rows, cols, min(rows, cols), records, _text(group.attrs.get("method", ""))

    def singular_values(self, name, i, where):
        """Writes record i to an address; its step."""
        group = self.file[f"embeddings/{name}"]
        _copied(group["singular_values"][i], where)
        return int(group["step"][i])

    def spectrum(self, which, site, i, where):
        """Writes record i of a site's "input" or "gradient" to an address; (step, rows)."""
        group, at = self.file["spectra"], self._sites[site]
        _copied(group[which][i, at["offset"]:at["offset"] + at["width"]], where)
        return int(group["step"][i]), int(group["rows"][i, site])

    def final(self, where):
        """Writes tid_mean and tid_var of every site to an address; the batches, -1: no pass."""
        if "final/batches" not in self.file:
            return -1
        sites = len(self._sites)
        for i, name in enumerate(FINALS):
            _copied(self.file[f"final/{name}"][:], where + 8 * i * sites)
        return int(self.file["final/batches"][()])

    def pairs(self, which, site, where):
        """Writes the pairs of a site to an address: column `which` of _abi.PAIRS."""
        _copied(self.file[f"final/{PAIRS[which]}"][site], where)
