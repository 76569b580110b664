"""Shared by the tests: the library and programs of $STATREC_LIBRARY and $STATREC_BIN, their own files, and reasons to
skip."""
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

import statrec

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(statrec.__file__)))
TOP = os.path.dirname(os.path.dirname(HERE))
SAMPLES = os.path.join(TOP, "sample_runs")
WIDTH = 3


def module(name):
    """Returns the module, or None: h5py, numpy and others that may be missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def wants(*names):
    """Skips a test if one of these modules does not import."""
    lacking = [name for name in names if module(name) is None]
    return unittest.skipIf(lacking, f"no {', '.join(lacking)}")


def compiler():
    """Returns a C compiler, or None."""
    return shutil.which(os.environ.get("CC") or "gcc") or shutil.which("cc")


needs_compiler = unittest.skipUnless(compiler(), "no C compiler")
needs_fork = unittest.skipUnless(hasattr(os, "fork"), "no fork")


class InDirectory(unittest.TestCase):
    """A test in its own directory, which is the current one."""

    def setUp(self):
        self.directory = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.directory)

    def fails(self, status, pattern, function, *arguments, **options):
        """The Error that the call raises, of this status and with this in its text."""
        with self.assertRaisesRegex(statrec.Error, pattern) as caught:
            function(*arguments, **options)
        self.assertEqual(caught.exception.status, status)
        return caught.exception


def python(script, *arguments, env=None, timeout=120):
    """Runs a script in a new interpreter; returns its CompletedProcess, with text."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(script), *arguments],
                          capture_output=True, text=True, timeout=timeout, check=False,
                          env={**os.environ, "PYTHONPATH": PACKAGE + os.pathsep + HERE,
                               **(env or {})})


def compiled(source, output, *flags):
    """Compiles C text to this file."""
    subprocess.run([compiler(), "-x", "c", "-", "-o", output, *flags], input=source, text=True,
                   check=True)


def begin(path, **options):
    """A Recorder with the site "norm1" of WIDTH features; and its number."""
    recorder = statrec.Recorder(path, program="tests", **options)
    return recorder, recorder.add_site("norm1", norm="bn", kind="encoder", width=WIDTH, eps=1e-5,
                                       alpha=0.9)


def put(recorder, step, sites=(0,), shift=0.0, scalars=()):
    """One step with numbers that follow from its own. scalars: (site, name, value) each."""
    recorder.begin_step(step)
    for site in sites:
        mean = [step + shift + i for i in range(WIDTH)]
        recorder.put_forward(site, 8, mean, [1.0, 2.0, 3.0],
                             [m * m + v for m, v in zip(mean, [1.0, 2.0, 3.0])])
        recorder.put_backward(site, [0.5 * step] * WIDTH, [0.25] * WIDTH, [1.0] * WIDTH)
    for scalar in scalars:
        recorder.put_scalar(*scalar)
    recorder.end_step(update=step, tokens=8, loss=1 / step)


def record(path, steps=5, **options):
    """Records a complete run file of `steps` steps."""
    recorder, _ = begin(path, **options)
    for step in range(1, steps + 1):
        put(recorder, step)
    recorder.close()
    return path


def put_one(recorder, widths=(1,)):
    """A step with a vector at every site."""
    recorder.begin_step(1)
    for site, width in enumerate(widths):
        recorder.put_vector(site, "mu_B", [1.0] * width)
    recorder.end_step(update=1, tokens=1)


def rows(values):
    """Converts NumPy arrays and lists of array.array to lists."""
    return [list(map(float, row)) for row in values]
