"""File without libstatrec: h5py gives the library's answers."""
import glob
import os
import subprocess
import sys
import unittest
from unittest import mock

import statrec
from statrec import _library
from statrec._reading import _h5py_reader
from support import PACKAGE, SAMPLES, InDirectory, record, wants


def plain(value):
    """Converts to values that == compares: bytes of arrays, with type and shape."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if hasattr(value, "tobytes"):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, float):
        return value.hex()
    return {k: plain(v) for k, v in vars(value).items()} if hasattr(value, "__dict__") else value


def statistics(run):
    """Every statistic, of all sites and of each."""
    found = {}
    for name in run.scalars:
        found[name] = [run.scalar(name), *(run.scalar(name, site) for site in run.sites)]
    for name in run.vectors:
        found[name] = [run.vector(name), *(run.vector(name, site) for site in run.sites),
                       run[name][1:3], run[name][-1], run[name][::7]]
    return {name: [plain(value) for value in values] for name, values in found.items()}


def content(run):
    """Returns everything that File provides."""
    told = {"info": run.info, "final": run.final, "vector_steps": run.vector_steps,
            "steps": dict(run.steps), "evals": dict(run.evals), "sites": dict(run.sites),
            "metrics": dict(run.metrics), "declared": dict(run.declared),
            "embeddings": {name: run.embedding(name) for name in run.embeddings}}
    told["spectra"] = {f"{which} {site}": run.spectrum(which, site)
                       for which in ("input", "gradient") for site in run.sites}
    told = {name: plain(value) for name, value in told.items()}
    told["definitions"] = [run.definition(name) for name in
                           [*run, *run.steps, *run.evals, "scalars/rows", "site", "nothing"]]
    told["names"] = [list(run), list(run.sites), list(run.steps), list(run.evals),
                     list(run.metrics), run.damage, [name in run for name in (*run, "x")]]
    return {**told, "statistics": statistics(run)}


def by_library(path):
    with statrec.open(path) as run:
        return content(run)


def nowhere():
    """Hides the library: no search places, and no cached load."""
    return (mock.patch.object(_library, "_places", list),
            mock.patch.object(_library, "_loaded", None),
            mock.patch.dict(os.environ))


class Without(InDirectory):
    """A test after which libstatrec loads again."""

    def setUp(self):
        super().setUp()
        self.places = nowhere()

    def hide(self):
        for patch in self.places:
            patch.start()
            self.addCleanup(patch.stop)
        os.environ.pop("STATREC_LIBRARY", None)

    def by_h5py(self, path):
        with statrec.open(path) as run:
            self.assertIsInstance(run._reader, _h5py_reader.Reader)
            return content(run)


@wants("h5py", "numpy")
class Numbers(Without):
    def test_every_sample_run(self):
        paths = sorted(glob.glob(os.path.join(SAMPLES, "*.h5")))
        self.assertGreater(len(paths), 20)
        told = {path: by_library(path) for path in paths}
        self.hide()
        for path, wanted in told.items():
            found = self.by_h5py(path)
            for part, value in wanted.items():
                with self.subTest(path=os.path.basename(path), part=part):
                    self.assertTrue(found[part] == value, "differs")  # the texts are too long
        self.assertTrue(any(each["embeddings"] for each in told.values()))
        self.assertTrue(any(each["spectra"] for each in told.values()))
        self.assertTrue(any(each["final"] and "pair_x" in each["final"] for each in told.values()))

    def test_own_scalars(self):
        recorder = statrec.Recorder("own.h5", program="tests", ranks="one of two")
        site = recorder.add_site("norm1", norm="bn", kind="encoder", width=3, eps=1e-5, alpha=0.9,
                                 alpha_bwd=0.5)
        of_site = recorder.declare_scalar("warmth", "K", "of a site", "site")
        of_step = recorder.declare_scalar("cold", "K", "of a step", "step")
        recorder.begin_step(1)
        recorder.put_vector(site, "mu_B", [1.0, 2.0, 3.0])
        recorder.put_scalar(site, of_site, 4.0)
        recorder.put_step_scalar(of_step, 5.0)
        recorder.end_step(update=1, tokens=1)
        recorder.close()
        wanted = by_library("own.h5")
        self.assertIn("cold", wanted["names"][2])
        self.hide()
        self.assertEqual(self.by_h5py("own.h5"), wanted)

    def test_names_are_those_of_the_format(self):
        library = _library.library()

        def names(ask):
            found = []
            while ask(len(found)):
                found.append(ask(len(found)).decode())
            return found
        self.assertEqual(_h5py_reader.SCALARS, names(library.sr_scalar_name))
        self.assertEqual(_h5py_reader.VECTORS, names(library.sr_vector_name))

    @wants("pandas")
    def test_frames(self):
        path = os.path.join(SAMPLES, "nlp_bn.h5")
        with statrec.open(path) as run:
            wanted = [run.frame(), run.steps.frame(), run.evals.frame(), run.frame(tidy=True)]
        self.hide()
        with statrec.open(path) as run:
            found = [run.frame(), run.steps.frame(), run.evals.frame(), run.frame(tidy=True)]
        for frame, other in zip(wanted, found):
            self.assertTrue(frame.equals(other))


@wants("h5py", "numpy")
class Errors(Without):
    def test_no_run_file(self):
        import h5py
        with open("text.h5", "w", encoding="utf-8") as file:
            file.write("no HDF5")
        with h5py.File("other.h5", "w"):
            pass
        self.hide()
        self.fails("io", "missing.h5: No such file", statrec.open, "missing.h5")
        self.fails("format", "text.h5: not a run file", statrec.open, "text.h5")
        self.fails("format", "other.h5: HDF5, but not a run file", statrec.open, "other.h5")

    def test_unknown_names(self):
        record("run.h5")
        self.hide()
        run = statrec.open("run.h5")
        self.fails("usage", "did you mean 'norm1'", run.scalar, "tid_mean", "norm11")
        self.fails("usage", "no 'tid'", run.scalar, "tid")
        run.close()
        self.fails("state", "is closed", lambda: run.info)

    def test_part(self):
        record("run.h5")
        os.rename("run.h5", "run.h5.part")
        self.hide()
        with statrec.open("run.h5") as run:
            self.assertEqual((run.info["path"], run.info["steps"]), ("run.h5.part", 5))

    def test_recording_needs_the_library(self):
        self.hide()
        self.fails("library", "libstatrec does not load", statrec.Recorder, "x.h5", program="t")

    def test_a_library_of_another_version_is_no_reason(self):
        record("run.h5")
        self.hide()
        _library._places = lambda: [("libc", "libc.so.6")]
        self.fails("library", "no function sr_abi_version", statrec.open, "run.h5")


class NoH5py(InDirectory):
    def test_tells_of_it(self):
        script = """
import sys, statrec
from statrec import _library
sys.path_hooks.clear(); sys.modules.pop("h5py", None)
_library._places = list
_library.importlib.util.find_spec = lambda name: None
try:
    statrec.open("x.h5")
except statrec.Error as why:
    print(why.hint)
"""
        environment = {k: v for k, v in os.environ.items() if k != "STATREC_LIBRARY"}
        result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                                check=False, env={**environment, "PYTHONPATH": PACKAGE})
        self.assertIn("pip install h5py", result.stdout, result.stderr)


if __name__ == "__main__":
    unittest.main()
