"""The data of `statrec view`: bins, runs, the address, commands; without a browser or Bokeh."""
import itertools
import os
import re
import shutil
import tempfile
import threading
import time
import unittest
import unittest.mock

import statrec
from support import SAMPLES, WIDTH, InDirectory, begin, module, put, record, wants

if module("numpy"):
    import numpy

    from statrec.viewer import bins, commands, forms, runs, source, state, texts, verdict

CV, NLP, EVERY = (os.path.join(SAMPLES, name)
                  for name in ("cv_bn.h5", "nlp_bn.h5", "cv_bn_every.h5"))


def has_programs():
    return shutil.which("stat-scalar", path=os.environ.get("STATREC_BIN")) is not None


with_programs = unittest.skipUnless(has_programs(), "no programs")


def rows_of(table, *names):
    """Columns of a table of statrec.table."""
    at = [[column["name"] for column in table["columns"]].index(name) for name in names]
    return [[numpy.nan if row[i] is None else row[i] for i in at] for row in table["rows"]]


@wants("numpy")
class Bins(unittest.TestCase):
    def test_ends_and_median_of_each_bin(self):
        values = numpy.array([5, 1, 3, 4, 2, 9, 7, 8, 6, 10, 0, 11], dtype=numpy.float32)
        got = bins.reduce(numpy.arange(12), lambda first, last: values[first:last], 3)
        self.assertEqual(got.least[:, 0].tolist(), [1, 2, 0])
        self.assertEqual(got.median[:, 0].tolist(), [3.5, 7.5, 8])
        self.assertEqual(got.largest[:, 0].tolist(), [5, 9, 11])
        self.assertEqual((got.first.tolist(), got.last.tolist()), ([0, 4, 8], [3, 7, 11]))
        self.assertEqual(got.x.tolist(), [1.5, 5.5, 9.5])

    def test_few_rows_stay(self):
        values = numpy.arange(9.0)
        got = bins.reduce(numpy.arange(9), lambda first, last: values[first:last], 3)
        self.assertTrue(got.whole)
        self.assertEqual(got.median[:, 0].tolist(), values.tolist())

    def test_no_extreme_is_lost(self):
        values = numpy.zeros((100_000, 3), dtype=numpy.float32)
        values[77_777, 1] = 5
        got = bins.reduce(numpy.arange(100_000), lambda first, last: values[first:last], 500)
        self.assertEqual(got.largest.max(axis=0).tolist(), [0, 5, 0])
        self.assertLessEqual(len(got.x), 500)

    def test_what_is_not_finite(self):
        values = numpy.array([[numpy.nan, numpy.inf, 1, 2]] * 3 + [[numpy.nan] * 4]).ravel()
        got = bins.reduce(numpy.arange(16), lambda first, last: values[first:last], 4)
        self.assertEqual(got.median[:3, 0].tolist(), [1.5] * 3)
        self.assertEqual(got.largest[:3, 0].tolist(), [2] * 3)
        self.assertTrue(numpy.isnan([got.least[3], got.median[3], got.largest[3]]).all())

    def test_blocks_change_nothing(self):
        values = numpy.random.default_rng(1).normal(size=(5000, 4)).astype(numpy.float32)

        def read(first, last):
            return values[first:last]
        whole = bins.reduce(numpy.arange(5000), read, 50)
        read.columns = bins.BLOCK // 300
        parts = bins.reduce(numpy.arange(5000), read, 50)
        for one, other in zip(whole[:-1], parts[:-1]):
            self.assertTrue((one == other).all())

    def test_running_medians(self):
        values = numpy.array([[1.0], [9], [2], [3], [numpy.nan], [4]])
        got = bins.smooth(values, 3)[:, 0]
        self.assertEqual(got[:4].tolist(), [5, 2, 3, 2.5])
        self.assertTrue(numpy.isnan(got[4]))


@wants("numpy")
@with_programs
class AsThePrograms(unittest.TestCase):
    """The page shows the numbers of the stat-* programs."""

    def same(self, binned, column, rows):
        """Rows least, median, largest of a table with three rows a bin."""
        told = numpy.array(rows, dtype=float).reshape(-1, 3)
        for got, wanted in zip((binned.least, binned.median, binned.largest), told.T):
            numpy.testing.assert_allclose(got[:, column], wanted, rtol=1e-7)

    def test_scalars_in_bins(self):
        with statrec.open(NLP) as file:
            site = list(file.sites)[2]
        run = source.Run(NLP)
        got = run.scalar("tid_mean", 2, run.window("step"), 20)
        self.assertFalse(got.whole)
        told = statrec.table("stat-scalar", NLP, site=site, stat="tid_mean", per_step=True,
                             buckets=20)
        self.same(got, 0, [row[0] for row in rows_of(told, "tid_mean")])

    def test_steps_of_a_zoom(self):
        run = source.Run(NLP)
        first, last = run.step_range("step", 100.2, 140.9)
        self.assertEqual((first, last), (101, 140))
        told = statrec.table("stat-scalar", NLP, site="first", stat="tid_var", per_step=True,
                             phase="101:140")
        got = run.scalar("tid_var", 0, run.window("step", 100.2, 140.9), 600)
        numpy.testing.assert_allclose(got.median[1:-1, 0],
                                      [row[0] for row in rows_of(told, "tid_var")], rtol=1e-7)

    def test_forms(self):
        run = source.Run(NLP)
        names = [form.name for form in forms.FORMS if form.name in run.scalars]
        self.assertIn("g_mu_share", names)
        for name in names:
            told = statrec.table("stat-scalar", NLP, stat=name, per_step=True)
            wanted = numpy.array([row[0] for row in rows_of(told, name)], dtype=float)
            got = run.scalar(name, None, run.window("step"), 600)
            numpy.testing.assert_allclose(got.median.T.ravel(), wanted, rtol=2e-5, err_msg=name)

    def test_forms_at_observed_sites(self):
        """If only the observer has a part, its fraction is relative to the dx that bn would give."""
        with tempfile.TemporaryDirectory() as where:
            path = os.path.join(where, "run.h5")
            with statrec.Recorder(path, program="tests") as recorder:
                sites = [recorder.add_site(f"{family}{observed}", norm=family, family=family, width=WIDTH,
                                           eps=1e-5, alpha=0.9, observed=observed)
                         for family in ("sigma", "psi", "row") for observed in (False, True)]
                for step in (1, 2):
                    put(recorder, step, sites, scalars=[(site, "dx_norm", 7.0) for site in sites[-2:]])
            run = source.Run(path)
            names = [form.name for form in forms.FORMS if form.name in run.scalars]
            self.assertEqual(len(names), len(forms.FORMS))
            for name, (number, site) in itertools.product(names, enumerate(run.sites)):
                with self.subTest(name, site=site.name):
                    got = run.scalar(name, number, run.window("step"), 600).median[:, 0]
                    try:
                        told = statrec.table("stat-scalar", path, site=site.name, stat=name, per_step=True)
                        wanted = numpy.array([row[0] for row in rows_of(told, name)], dtype=float)
                    except statrec.Error:  # it has no value there
                        wanted = numpy.full(2, numpy.nan)
                    numpy.testing.assert_allclose(got, wanted, rtol=2e-5)

    def test_losses(self):
        run = source.Run(NLP)
        told = statrec.table("stat-curve", NLP, stat="loss")
        numpy.testing.assert_allclose(run.curve("loss", run.window("step"), 600).median[:, 0],
                                      [row[0] for row in rows_of(told, "loss")], rtol=1e-7)

    def test_verdict_before_its_page(self):
        go_on, watch, run = threading.Event(), verdict.Watch(), source.Run(NLP)
        self.addCleanup(watch.close)
        self.addCleanup(go_on.set)
        with unittest.mock.patch.object(verdict, "page_of", lambda run: go_on.wait(60) and "text"):
            end = time.monotonic() + 60
            while watch.get(run)[0] is None and time.monotonic() < end:
                time.sleep(0.05)
            found, lacks = watch.get(run)
            self.assertTrue(found.line.startswith("NOTHING FOUND"))
            self.assertEqual((found.page, lacks), ("", "statrec diagnose is at work"))
            go_on.set()
            while watch.get(run)[1] and time.monotonic() < end:
                time.sleep(0.05)
        self.assertEqual(watch.get(run)[0].page, "text")

    def test_verdict(self):
        found = verdict.diagnose(source.Run(NLP))
        self.assertEqual(found.findings, [])
        self.assertTrue(found.line.startswith("NOTHING FOUND in what could be asked"))
        self.assertEqual(len(found.others), len(statrec.diagnose(NLP)))


@wants("numpy")
class Runs(InDirectory):
    def test_axes(self):
        run = source.Run(NLP)
        self.assertEqual(run.axis("percent")[-1], 100)
        self.assertEqual(run.axis("step")[0], 1)
        self.assertAlmostEqual(run.axis("epoch")[-1], 1.285, 2)
        window = run.window("percent", 25, 50)
        self.assertEqual((window.x[1], window.x[-2]), (25, 50))
        self.assertEqual(len(window), 63)

    def test_burn_in(self):
        self.assertEqual(source.Run(NLP).burn_in, 90)
        self.assertEqual(source.Run(CV).burn_in, 44)
        self.assertEqual(source.Run(CV).burn_in_end, 44)

    def test_burn_in_of_a_host(self):
        """It counts recorded steps, whatever their numbers."""
        with statrec.Recorder("tokens.h5") as recorder:
            recorder.add_site("a", norm="bn", width=1, eps=1e-5, alpha=0.5)
            for n in range(1, 11):
                recorder.begin_step(1000 * n)
                recorder.end_step(update=n, tokens=1, loss=1.0)
        self.assertEqual(source.Run("tokens.h5").burn_in, 7)
        self.assertEqual(source.Run("tokens.h5").burn_in_end, 7000)

    def test_vectors(self):
        run = source.Run(EVERY)
        with statrec.open(EVERY) as file:
            site = list(file.sites)[1]
            wanted = file.vector("mu_B", site) - file.vector("mu", site)
        got = run.vector("mu_difference", site, run.vector_window("step", None, None), 100_000)
        numpy.testing.assert_allclose(got.median, wanted, atol=1e-7)
        self.assertEqual(run.vector_row("mu_difference", site, 3).tolist(), got.median[3].tolist())

    def test_points_of_a_series(self):
        run = source.Run(NLP)
        run.whole = 1
        got = run.scalar("tid_mean", 0, run.window("step"), 200)
        self.assertLessEqual(len(got.x), 200)
        self.assertFalse(got.whole)
        self.assertEqual(len(run.vector("mu_B", run.sites[0].name, run.vector_window(
            "step", None, None), 2).x), 2)

    def test_order_of_features(self):
        run = source.Run(EVERY)
        site = run.sites[1].name
        window = run.vector_window("step", None, None)
        values = run.vector("sigma2_B", site, window, 100_000).median
        largest = run.feature_order("sigma2_B", site, window, "largest")
        self.assertEqual(largest[0], numpy.abs(values).max(axis=0).argmax())
        apart = numpy.abs(values - numpy.median(values, axis=1, keepdims=True))
        score = (apart / numpy.median(apart, axis=1, keepdims=True)).mean(axis=0)
        outlier = run.feature_order("sigma2_B", site, window, "outlier")
        self.assertEqual(outlier[:5].tolist(), numpy.argsort(-score)[:5].tolist())
        self.assertEqual(run.feature_order("sigma2_B", site, window, "feature")[:3].tolist(),
                         [0, 1, 2])

    def test_a_growing_run(self):
        recorder, _ = begin("run.h5", flush_steps=1)
        put(recorder, 1)
        recorder.flush()
        run = source.Run("run.h5")
        self.assertTrue(run.running)
        self.assertEqual(len(run.steps), 1)
        put(recorder, 2)
        recorder.flush()
        self.assertTrue(run.refresh())
        self.assertEqual(len(run.steps), 2)
        recorder.close()
        self.assertTrue(run.refresh())
        self.assertFalse(run.running)
        self.assertFalse(run.refresh())

    def test_a_file_that_goes_and_comes(self):
        record("run.h5")
        run = source.Run("run.h5")
        self.assertEqual(len(run.steps), 5)
        os.rename("run.h5", "away.h5")
        self.assertTrue(run.refresh())
        self.assertIn("gone", run.problem)
        self.assertEqual(len(run.steps), 5)
        self.assertFalse(run.refresh())
        os.rename("away.h5", "run.h5")
        self.assertTrue(run.refresh())
        self.assertEqual(run.problem, "")

    def test_a_damaged_file(self):
        record("run.h5")
        run = source.Run("run.h5")
        self.assertEqual(len(run.steps), 5)
        with open("run.h5", "r+b") as file:
            file.truncate(700)
        self.assertTrue(run.refresh())
        self.assertIn("run.h5", run.problem)

    def test_table_of_runs(self):
        for name, seed in (("a", 1), ("b", 2)):
            os.makedirs(name)
            record(f"{name}/run.h5", seed=seed, config=f"norm = {name}\nlr = 1\n")
        with open("a/broken.h5", "w", encoding="utf-8") as file:
            file.write("no HDF5")
        found = runs.Runs(["a", "b", "a/run.h5"])
        self.assertEqual(list(found), ["a/broken.h5", "a/run.h5", "b/run.h5"])
        names, rows = runs.columns(found.summaries())
        self.assertEqual(names, ["run", "status", "model", "data", "seed", "steps", "loss", "norm"])
        self.assertTrue(rows[0][1].startswith("not readable: a/broken.h5"))
        self.assertEqual(rows[1][:2] + rows[1][4:], ["a/run.h5", "complete", 1, 5, 0.2, "a"])
        self.assertEqual(rows[2][-1], "b")

    def test_files_that_do_not_exist_yet(self):
        record("done.h5")
        for name in ("growing.h5.part", "other.h5"):
            with open(name, "w", encoding="utf-8"):
                pass
        found = runs.find(["done.h5", "growing.h5", "none.h5", "other.h5"])
        self.assertEqual(runs.absent(found), ["none.h5"])


@wants("numpy")
class Address(unittest.TestCase):
    def test_there_and_back(self):
        now = state.State({"run": "a b/c.h5", "with": ("x.h5", "y,z&.h5"), "from": 1.25, "to": 1e9,
                           "x": "percent", "smooth": 9, "feature": 3, "log": ("losses",)})
        again, wrong = state.parse(now.query())
        self.assertEqual((again, wrong), (now, []))

    def test_nothing(self):
        self.assertEqual(state.State().query(), "")
        self.assertEqual(state.parse(""), (state.State(), []))

    def test_every_field_has_a_text(self):
        values = {"from": 2.0, "to": 3.0, "smooth": 3, "x": "epoch", "show": "largest", "at": 7,
                  "order": "outlier", "mode": "difference", "feature": 1}
        for field in state.FIELDS:
            value = values.get(field.name, ("q",) if isinstance(field.default, tuple) else "q")
            again, wrong = state.parse(state.State({field.name: value}).query())
            self.assertEqual((again[field.name], wrong), (value, []), field.name)

    def test_what_is_wrong_is_said_and_not_used(self):
        for query, word in (("?x=depth", "x=depth"), ("?smooth=4", "smooth=4"),
                            ("?from=nan", "from=nan"), ("?feature=-1", "feature=-1"),
                            ("?from=5&to=4", "wrong order"), ("?nonsense=1", "nonsense"),
                            ("?run=" + "a" * 9000, "longer")):
            got, wrong = state.parse(query)
            self.assertEqual(got, state.State(), query[:40])
            self.assertEqual(len(wrong), 1)
            self.assertIn(word, wrong[0])


@wants("numpy")
class Commands(unittest.TestCase):
    def test_words(self):
        run = source.Run("-odd name.h5")
        command = commands.statplot("layers", [run], (5, 9), stat="tid_var", log=True, linear=False,
                                    smooth=0)
        self.assertEqual(command, ["statplot", "layers", "./-odd name.h5", "--steps=5:9",
                                   "--stat=tid_var", "--log"])
        self.assertEqual(commands.shown(command), "statplot layers './-odd name.h5' --steps=5:9 "
                                                  "--stat=tid_var --log")

    def test_sites_are_no_globs(self):
        self.assertEqual(commands.site("a*[b],c"), "a[*][[]b]\\,c")

    @unittest.skipUnless(shutil.which("gnuplot") and has_programs(), "no statplot or no gnuplot")
    def test_a_figure(self):
        image, warned = commands.drawn(commands.statplot(
            "layers", [source.Run(CV)], (10, 60), stat="tid_mean", linear=True), "svg")
        self.assertIn(b"<svg", image)
        self.assertEqual(warned, [])
        with self.assertRaisesRegex(statrec.Error, "no_such"):
            commands.drawn(commands.statplot("layers", [source.Run(CV)], stat="no_such"), "pdf")


@wants("numpy", "bokeh", "panel", "pandas")
class Panels(unittest.TestCase):
    """Output of the panels, without a server."""

    def page(self, query, *paths):
        from statrec.viewer.page import Page
        page = Page(runs.Runs(paths), self, query)
        page.refresh()
        return page, {one.name: one for one in page.panels}

    def get(self, run):
        """Replaces verdict.Watch."""
        return None, ""

    def line(self, figure, n=0):
        """The data of the n-th line of a figure."""
        lines = [one for one in figure.renderers if type(one.glyph).__name__ == "Line"]
        return lines[n].data_source.data

    def figure(self, panel, name):
        return next(one for one in panel.figures if one.name == name)

    def test_burn_in(self):
        from bokeh.models import BoxAnnotation
        for axis, end in (("step", 90), ("percent", 37.5)):
            _, panels = self.page(f"?x={axis}", NLP)
            for name, figure in (("losses", "losses-loss"), ("site", "site")):
                box, = (one for one in self.figure(panels[name], figure).center
                        if isinstance(one, BoxAnnotation) and one.visible)
                self.assertEqual((box.right, box.visible), (end, True))
                self.assertNotIsInstance(box.left, (int, float))
            for name in ("depth", "features"):
                line = self.figure(panels[name], name).select_one({"name": "burn-in"})
                self.assertEqual((line.location, line.visible), (end, True))

    @with_programs
    def test_saved_data(self):
        """The CSV of a panel has the bins of the program."""
        page, panels = self.page("", NLP)
        page.bins = 20
        panels["site"].refresh()
        names, rows = panels["site"].data()
        told = statrec.table("stat-scalar", NLP, site="first", stat="tid_mean", per_step=True,
                             buckets=20)
        wanted = numpy.array([row[0] for row in rows_of(told, "tid_mean")]).reshape(-1, 3)
        self.assertEqual(names[3:], ["least", "median", "largest"])
        numpy.testing.assert_allclose(numpy.array([row[3:] for row in rows]), wanted, rtol=1e-7)

    def test_difference(self):
        _, panels = self.page("?with=nlp_ln.h5&mode=difference", NLP,
                              os.path.join(SAMPLES, "nlp_ln.h5"))
        got = self.line(panels["runs"].figures[0])
        with statrec.open(NLP) as one, statrec.open(os.path.join(SAMPLES, "nlp_ln.h5")) as other:
            shared = min(one.info["steps"], other.info["steps"])
            wanted = other.steps["loss"][:shared] - one.steps["loss"][:shared]
        numpy.testing.assert_allclose(got["median"][:shared], wanted, rtol=1e-6)

    def test_marks_of_few_points(self):
        """A single value of a feature, and a step of a heat map, are seen."""
        page, panels = self.page("", CV)
        for name, figure, seen in (("features", "feature", True), ("losses", "losses-loss", False)):
            marks = [one for one in self.figure(panels[name], figure).renderers
                     if type(one.glyph).__name__ == "Scatter" and one.glyph.size == 4]
            self.assertEqual([one.visible for one in marks], [seen], name)
        data = panels["features"]._map.source.data
        width = page.x_range.end - page.x_range.start
        self.assertAlmostEqual(data["dw"][0], 0.02 * width)
        self.assertAlmostEqual(data["x"][0] + data["dw"][0] / 2, 160)
        self.assertIn("recorded at 1 step on screen", panels["features"].sentence())

    def test_ends_of_axes(self):
        """A constant has a tenth of it around it; percents end at 0 and 100 unless values do not."""
        from statrec.viewer import draw

        def ends(values, unit, log=False):
            chart = draw.Chart(draw.LIGHT, None, title="", y="", unit=unit, log=log)
            x = numpy.arange(len(values))
            chart.show([draw.Curve("a", x, *3 * [numpy.array(values, dtype=float)])])
            y_range = chart.figure.y_range
            return y_range.start, y_range.end, y_range.default_span

        nothing, span = (float("nan"), float("nan")), ends([1, 2], "")[2]
        for values, unit, wanted in (([0.1, 0.1], "1", (*nothing, 0.02)),
                                     ([100, 100], "percent", (nothing[0], 100, 20)),
                                     ([100, 100], "1", (*nothing, 20)),
                                     ([0, 99.5], "percent", (0, 100, span)),
                                     ([50, 60], "percent", (*nothing, span)),
                                     ([90, 101], "percent", (*nothing, span)),
                                     ([-1, 100], "percent", (*nothing, span)),
                                     ([float("nan")], "percent", (*nothing, span))):
            got = [float("nan") if one is None else one for one in ends(values, unit)]
            numpy.testing.assert_allclose(got, wanted, err_msg=str((values, unit)))
        self.assertEqual(ends([5, 5], "", log=True)[2], span)

    def test_two_tasks(self):
        """A caution appears if losses of images and text cannot be compared. Grey is the burn-in of both, light grey
        of one; a run beside others has its own."""
        from bokeh.models import BoxAnnotation
        ln = os.path.join(SAMPLES, "nlp_ln.h5")
        for query, runs_of, caution in (("?with=nlp_bn.h5", (CV, NLP), True),
                                        ("?with=nlp_ln.h5", (NLP, ln), False),
                                        ("?with=nlp_bn.h5&compare=tid_mean", (CV, NLP), False)):
            _, panels = self.page(query, *runs_of)
            self.assertEqual("cannot be compared" in panels["runs"].sentence(), caution, query)
            both, one = (box for box in panels["runs"].figures[0].center
                         if isinstance(box, BoxAnnotation))
            self.assertEqual(both.visible, CV in runs_of, query)
            self.assertEqual((one.right, one.visible), (90, True), query)
            if both.visible:
                self.assertEqual((both.right, one.left), (44, 44), query)
        _, panels = self.page("?with=nlp_bn.h5&mode=side+by+side", CV, NLP)
        self.assertEqual([box.right for figure in panels["runs"].figures for box in figure.center
                          if isinstance(box, BoxAnnotation) and box.visible], [44, 90])

    def test_site_without_kind(self):
        with tempfile.TemporaryDirectory() as where:
            path = os.path.join(where, "run.h5")
            with statrec.Recorder(path, program="tests") as recorder:
                site = recorder.add_site("bn2", norm="bn", family="sigma", width=WIDTH, eps=1e-5,
                                         alpha=0.9)
                put(recorder, 1, [site])
            _, panels = self.page("", path)
            self.assertIn(f"Site bn2: bn, {WIDTH} features, alpha 0.9;", panels["site"].sentence())

    def test_units(self):
        from statrec.viewer.texts import with_unit
        self.assertEqual([with_unit("ppl", "1"), with_unit("share", "percent")],
                         ["ppl", "share (percent)"])
        _, panels = self.page("?metric=valid_ppl", NLP)
        self.assertEqual(self.figure(panels["losses"], "losses-metric").title.text, "valid_ppl")

    def test_controls(self):
        page, panels = self.page("?smooth=5&log=losses,site".replace(",", "%09"), NLP)
        plain = page.run.curve("loss", page.window(page.run), page.bins).median
        figure = self.figure(panels["losses"], "losses-loss")
        numpy.testing.assert_allclose(self.line(figure)["median"], bins.smooth(plain, 5)[:, 0])
        for figure in (figure, panels["site"].figures[0]):
            self.assertIn("Log", type(figure.yaxis[0]).__name__)
        self.assertIn("--log --smooth=5", commands.shown(panels["losses"].figure_command()))

    def test_quantiles(self):
        page, panels = self.page("", EVERY)
        with statrec.open(EVERY) as file:
            batch, running = (numpy.sort(file.vector(name, "stem")[-1]) for name in ("mu_B", "mu"))
        points = panels["step"]._points.source.data
        numpy.testing.assert_allclose(points["x"], running)
        numpy.testing.assert_allclose(points["y"], batch)
        self.assertEqual(int(panels["step"]._bars.source.data["top"].sum()), len(batch))
        step = int(page.run.vector_steps()[-1])
        self.assertIn(f"--step={step}", panels["step"].figure_command())
        self.assertIn("--site=stem</code>", panels["step"].words()[1])
        self.assertIn("statplot quantiles", panels["step"].words()[1])


class Notebook(unittest.TestCase):
    """statrec.show in a notebook."""

    @wants("numpy", "bokeh", "panel", "pandas")
    def test_object_renders(self):
        from bokeh.document import Document
        shown = statrec.show(NLP)
        root = shown.get_root(Document())
        figures = {model.name: model for model in root.references() if hasattr(model, "renderers")}
        for name in ("losses-loss", "depth", "site", "features", "histogram"):
            self.assertIn(name, figures)
        lines = [one for one in figures["losses-loss"].renderers
                 if type(one.glyph).__name__ == "Line"]
        with statrec.open(NLP) as file:
            numpy.testing.assert_array_equal(lines[0].data_source.data["median"],
                                             file.steps["loss"])

    @wants("numpy", "bokeh", "panel", "pandas", "nbclient", "nbformat", "ipykernel")
    def test_executed(self):
        import nbclient
        import nbformat
        cell = nbformat.v4.new_code_cell(f"import statrec\nstatrec.show({NLP!r})")
        nbclient.NotebookClient(nbformat.v4.new_notebook(cells=[cell]), timeout=300).execute()
        pages = [output["data"]["text/html"] for output in cell.outputs
                 if output.output_type == "execute_result"]
        self.assertEqual(len(pages), 1)
        self.assertIn("losses-loss", pages[0])
        self.assertIn("statplot curves", pages[0])


@wants("numpy")
class Texts(unittest.TestCase):
    HOSTILE = "<script>alert(1)</script>$$x$$\\[y\\]\n\0\x1b[2J"

    def test_no_markup(self):
        for text in (texts.escaped(self.HOSTILE), texts.table([self.HOSTILE], [[self.HOSTILE]])):
            self.assertNotIn("<script", text)
            self.assertNotIn("$$", text)
        self.assertEqual(texts.escaped('"\'&'), "&quot;&#x27;&amp;")

    def test_no_control_characters(self):
        self.assertEqual(texts.plain("a\n\0b\u202ec"), "a  b c")

    def test_length(self):
        self.assertEqual(len(texts.plain("x" * 10_000_000)), texts.MOST)

    def test_hover_texts_name_no_columns(self):
        for character in "@$":
            self.assertNotIn(character, texts.literal(f"{character}x{{f}}"))


if __name__ == "__main__":
    unittest.main()
