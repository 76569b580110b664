"""plot and table: the programs found, called and understood."""
import os
import re
import stat
import unittest
import warnings
from unittest import mock

import statrec
from statrec import _plot
from support import SAMPLES, InDirectory, module, record

CV, NLP = (os.path.join(SAMPLES, name) for name in ("cv_bn.h5", "nlp_bn.h5"))


def program(name, script):
    """An executable shell script of this name in the current directory."""
    with open(name, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + script)
    os.chmod(name, stat.S_IRWXU)


def can_draw():
    """Whether figures can be drawn here."""
    import shutil
    return shutil.which("gnuplot") is not None and shutil.which(
        "statplot", path=os.environ.get("STATREC_BIN")) is not None


drawing = unittest.skipUnless(can_draw(), "no statplot or no gnuplot")


class Diagnosed(unittest.TestCase):
    def test_samples(self):
        found = statrec.diagnose(CV, NLP)
        self.assertEqual(found.findings, [])
        self.assertEqual({row["run"] for row in found}, {CV, NLP})
        self.assertIn("NOTHING FOUND in what could be asked", str(found))
        with statrec.open(CV) as run:
            self.assertEqual(len(run.diagnose()), len(found) // 2)

    def test_order_of_findings(self):
        rows = _plot.Diagnosis([dict(verdict="found", rank=2), dict(verdict="in-order", rank=0),
                                dict(verdict="found", rank=1)])
        self.assertEqual([row["rank"] for row in rows.findings], [1, 2])

    def test_missing_file(self):
        with self.assertRaises(statrec.Error):
            statrec.diagnose("none.h5")


class Flags(unittest.TestCase):
    def test_forms(self):
        self.assertEqual(
            _plot._flags(dict(form="relative", log=True, linear=False, max_x=3, smooth=0,
                              labels=["a", "b, c"], site=("first", "last"), title=None,
                              yrange="-1:1")),
            ["--form=relative", "--log", "--no-linear", "--max-x=3", "--smooth=0",
             "--labels=a,b\\, c", "--site=first,last", "--yrange=-1:1"])


class Programs(InDirectory):
    """Called commands, with scripts in place of statrec's programs."""

    def setUp(self):
        super().setUp()
        change = mock.patch.dict(os.environ, STATREC_BIN=self.directory)
        change.start()
        self.addCleanup(change.stop)

    def test_arguments(self):
        program("statplot", 'printf "%s\\n" "$@" >arguments; : >out.svg\n')
        drawn = statrec.plot("fig2", "a b.h5", b"c.h5", output="out.svg", form="relative")
        with open("arguments", encoding="utf-8") as file:
            self.assertEqual(file.read().splitlines(),
                             ["fig2", "a b.h5", "c.h5", "-o", "out.svg", "--form=relative"])
        self.assertEqual((drawn, drawn.messages), ("out.svg", []))

    def test_open_file_for_a_path(self):
        program("statplot", 'echo "$2" >arguments\n')
        with statrec.open(NLP) as run:
            statrec.plot("layers", run, output="out.pdf")
        with open("arguments", encoding="utf-8") as file:
            self.assertEqual(file.read(), NLP + "\n")

    def test_warnings(self):
        program("statplot", "echo 'statplot: warning: not comparable' >&2\n")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            drawn = statrec.plot("fig2", output="out.svg")
        self.assertEqual([str(one.message) for one in told], ["statplot: not comparable"])
        self.assertEqual(told[0].filename, __file__)
        self.assertEqual(drawn.messages, ["not comparable"])

    def test_failure(self):
        program("stat-gap", "echo 'stat-gap: warning: w' >&2; echo 'stat-gap: no metric' >&2\n"
                            "echo 'stat-gap: hint: declared: f1' >&2; exit 2\n")
        error = self.fails("usage", "^stat-gap: no metric .declared: f1.$", statrec.table,
                           "stat-gap", "a.h5")
        self.assertEqual((error.text, error.hint), ("stat-gap: no metric", "declared: f1"))
        program("stat-gap", "exit 1\n")
        self.fails("io", "stat-gap: exit status 1", statrec.table, "stat-gap")

    def test_table(self):
        program("stat-gap", "echo \"{\\\"arguments\\\": \\\"$*\\\", \\\"x\\\": [1, null]}\"\n")
        self.assertEqual(statrec.table("stat-gap", "a.h5", metric="f1"),
                         {"arguments": "a.h5 --format=json --metric=f1", "x": [1, None]})
        self.assertEqual(statrec.table("stat-gap", "a.h5", format="tsv"),
                         '{"arguments": "a.h5 --format=tsv", "x": [1, null]}\n')

    def test_missing_program(self):
        error = self.fails("io", f"no program statplot in {self.directory}", statrec.plot, "fig2")
        self.assertIn("STATREC_BIN", error.hint)

    def test_path_is_last(self):
        program("stat-here", "echo '{}'\n")
        with mock.patch.dict(os.environ, PATH=self.directory + os.pathsep + os.environ["PATH"]):
            del os.environ["STATREC_BIN"]
            self.assertEqual(statrec.table("stat-here"), {})
            self.fails("io", "no program stat-there in .*bin, the PATH", statrec.table,
                       "stat-there")

    def test_beside_the_library(self):
        os.makedirs("lib")
        os.makedirs("bin")
        program("bin/stat-here", "echo '{}'\n")
        with mock.patch.object(_plot, "path_of",
                               lambda library: os.path.join(self.directory, "lib", "x.so")):
            del os.environ["STATREC_BIN"]
            self.assertEqual(statrec.table("stat-here"), {})

    def test_file_of_nobody(self):
        program("statplot", 'echo "<svg/>" >"$3"\n')
        first, second = statrec.plot("fig2"), statrec.plot("/x/own.gp")
        self.assertNotEqual(first, second)
        self.assertTrue(os.path.basename(second).startswith("own-"))
        self.assertEqual(first._repr_svg_(), "<svg/>\n")
        self.assertIsNone(first._repr_png_())
        self.assertEqual(os.listdir(), ["statplot"])

    def test_other_pictures(self):
        program("statplot", 'printf PNG >"$3"\n')
        drawn = statrec.plot("fig2", output="out.png")
        self.assertEqual(drawn._repr_png_(), b"PNG")
        self.assertIsNone(drawn._repr_svg_())


@drawing
class Drawn(InDirectory):
    def test_figure(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            drawn = statrec.plot("fig2", CV, NLP, output="fig2.svg", form="relative", log=True)
        self.assertEqual(drawn, "fig2.svg")
        self.assertIn("<svg", drawn._repr_svg_())
        self.assertTrue(any("not comparable" in str(one.message) for one in told))

    def axes(self, figure, *files):
        """The words "step" and "epoch" that the figure's axes have."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn = statrec.plot(figure, *files, output=f"{figure}.svg")
        return set(re.findall(r">(step|epoch)<", drawn._repr_svg_()))

    def test_over_steps_without_epochs(self):
        """A run without epochs is drawn over steps, and so is every run beside it."""
        record("run.h5", steps=30)
        for figure in ("overview", "curves", "modes"):
            self.assertEqual(self.axes(figure, "run.h5"), {"step"}, figure)
            self.assertEqual(self.axes(figure, CV), {"epoch"}, figure)
        self.assertEqual(self.axes("modes", "run.h5", CV), {"step"})

    def test_no_figure(self):
        error = self.fails("usage", "no figure or table 'fig99'|fig99", statrec.plot, "fig99", CV)
        self.assertEqual(os.listdir(), [])
        self.assertIn("statplot", error.text)

    def test_table(self):
        found = statrec.table("stat-scalar", NLP, stat="tid_mean", site="first")
        self.assertEqual(found["program"], "stat-scalar")
        names = [column["name"] for column in found["columns"]]
        self.assertEqual(len(found["rows"][0]), len(names))

    @unittest.skipIf(module("IPython") is None, "no IPython")
    def test_notebook(self):
        from IPython.core.formatters import SVGFormatter
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertIn("<svg", SVGFormatter()(statrec.plot("fig2", CV, NLP)))
