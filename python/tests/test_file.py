"""File: metadata of a run, and every way of reading it, with NumPy and without."""
import gzip
import math
import os
import shutil
import unittest
from unittest import mock

import statrec
from statrec._reading import _arrays, _columns
from support import (SAMPLES, TOP, InDirectory, begin, put, python, record, rows, wants)

BN = os.path.join(SAMPLES, "nlp_bn.h5")


def flat(values):
    """Converts an array or list to a list of floats, with NaN as None."""
    return [None if math.isnan(value) else float(value) for value in values]


class Sample(unittest.TestCase):
    """A file that statrec train recorded."""

    @classmethod
    def setUpClass(cls):
        cls.run_file = statrec.open(BN)

    @classmethod
    def tearDownClass(cls):
        cls.run_file.close()

    def fails(self, pattern, function, *arguments):
        with self.assertRaisesRegex(statrec.Error, pattern) as caught:
            function(*arguments)
        return caught.exception

    def test_info(self):
        info = self.run_file.info
        self.assertEqual((info["path"], info["program"], info["status"], info["steps"],
                          info["sites"], info["seed"], info["model"], info["task"]),
                         (BN, "statrec train", "complete", 240, 7, 1, "transformer", "pairs"))
        self.assertIn("norm = bn\n", info["config"])
        info["steps"] = 0
        self.assertEqual(self.run_file.info["steps"], 240)

    def test_sites(self):
        sites = self.run_file.sites
        self.assertEqual(len(sites), 7)
        self.assertEqual(list(sites)[:2], ["encoder.0.norm1", "encoder.0.norm2"])
        site = sites["encoder.0.norm2"]
        self.assertEqual((site.number, site.name, str(site), site.norm, site.called, site.kind,
                          site.family, site.width, site.offset, site.axis, site.uses,
                          site.constants, site.eps, site.alpha, site.layer_scale, site.observed),
                         (1, "encoder.0.norm2", "encoder.0.norm2", "bn", "bn", "encoder", "sigma",
                          64, 64, "batch", "mu,sigma2", "", 1e-5, 0.95, 0, False))
        self.assertEqual((sites[1], sites[-1].name, sites[site]), (site, "encoder.final", site))
        self.assertIn("encoder.final", repr(sites))
        self.assertEqual(self.run_file.site(1), site)

    def test_unknown_names(self):
        run = self.run_file
        error = self.fails("sites: no 'encoder.0.norm'", run.sites.__getitem__, "encoder.0.norm")
        self.assertIsInstance(error, KeyError)
        self.assertIn("did you mean 'encoder.0.norm", error.hint)
        self.fails("statistics: no 'mu_b'", run.__getitem__, "mu_b")
        self.fails("scalars: no 'mu_B'", run.scalar, "mu_B")
        self.fails("vectors: no 'tid_mean'", run.vector, "tid_mean")
        self.fails("steps: no 'los'", run.steps.__getitem__, "los")
        self.fails("evals: no 'x'", run.evals.__getitem__, "x")
        self.fails("metrics: no 'x'", run.metrics.__getitem__, "x")
        self.fails("no embedding 'x'", run.embedding, "x")
        self.fails("spectra: no 'x'", run.spectrum, "x", 0)
        self.fails("sites: no 'x'", run["mu_B"].__getitem__, "x")
        with self.assertRaises(IndexError):
            run.sites[7]
        self.assertIsNone(run.sites.get("x"))
        self.assertNotIn("x", run.sites)
        self.assertNotIn("mu_b", run)

    def test_names(self):
        run = self.run_file
        self.assertIn("tid_mean", run.scalars)
        self.assertNotIn("Gamma_max", run.scalars)  # declared in every file, of PN only
        self.assertIn("Gamma_max", run)
        self.assertIn("mu_B", run.vectors)
        self.assertNotIn("nu", run.vectors)
        self.assertEqual(list(run), [*run.scalars, *run.vectors])

    def test_definitions(self):
        run = self.run_file
        text = "||mu_B - mu||_2 / d"
        self.assertEqual((run.definition("dist_mu"), run.definition("scalars/dist_mu"),
                          run["dist_mu"].definition, run["dist_mu"][0:0].shape
                          if _arrays.numpy() else (0, 7)), (text, text, text, (0, 7)))
        self.assertEqual(run.definition("mu_B"), "mean over valid rows")
        self.assertEqual(run["mu_B"]["encoder.final"].definition, "mean over valid rows")
        self.assertIn("loss", run.definition("loss"))
        self.assertIn("running statistics", run.definition("valid_loss"))
        self.assertEqual(run.definition("nothing"), "")

    def test_metrics(self):
        metric = self.run_file.metrics["valid_loss"]
        self.assertEqual((metric.name, metric.better), ("valid_loss", "less"))
        self.assertTrue(metric.unit.startswith("nats per token"))
        self.assertIn("loss", metric.definition)
        self.assertEqual(self.run_file.metrics["valid_accuracy"].better, "more")
        self.assertEqual(len(self.run_file.declared), 0)

    def test_steps_and_evaluations(self):
        run = self.run_file
        self.assertEqual(list(run.steps)[:7],
                         ["step", "update", "tokens", "epoch", "loss", "lr", "grad_norm"])
        self.assertEqual(list(run.steps["step"]), list(range(1, 241)))
        self.assertEqual(len(run.steps["loss"]), 240)
        self.assertEqual(list(run.steps.lazy("step")[2:4]), [3, 4])
        self.assertEqual(len(run.evals["step"]), run.info["evals"])
        self.assertEqual(run.evals["step"][-1], 240)
        self.assertIn("valid_loss", list(run.evals))
        self.assertEqual(list(run.vector_steps), [120, 240])

    def test_nothing_is_damaged(self):
        self.assertEqual(self.run_file.damage, [])
        self.assertEqual(statrec.check(BN), [])

    def test_final(self):
        final = self.run_file.final
        self.assertGreater(final["batches"], 0)
        self.assertEqual((len(final["tid_mean"]), len(final["tid_var"])), (7, 7))

    def test_closed(self):
        with statrec.open(BN) as run:
            column = run["mu_B"]["encoder.final"]
            self.assertIn("complete, 240 steps", repr(run))
        run.close()
        self.assertIn("closed", repr(run))
        for use in (lambda: run.info, lambda: run["mu_B"], lambda: column[0],
                    lambda: run.steps):
            with self.assertRaisesRegex(statrec.Error, "the file is closed") as caught:
                use()
            self.assertEqual(caught.exception.status, "state")
        self.assertEqual(run.reopen().info["steps"], 240)
        run.close()


@wants("h5py", "numpy")
class BesideH5py(unittest.TestCase):
    """Every number of the samples as h5py reads it."""

    def same(self, run, h5py_file):
        import numpy
        for name in run.scalars:
            numpy.testing.assert_array_equal(run.scalar(name), h5py_file["scalars"][name][:])
            numpy.testing.assert_array_equal(run.scalar(name, 2), h5py_file["scalars"][name][:, 2])
        for name in run.vectors:
            whole = h5py_file["vectors"][name][:]
            numpy.testing.assert_array_equal(run.vector(name), whole)
            for site in run.sites.values():
                numpy.testing.assert_array_equal(
                    run.vector(name, site), whole[:, site.offset:site.offset + site.width])
        for group, columns in (("steps", run.steps), ("evals", run.evals)):
            self.assertEqual(set(columns), set(h5py_file[group]))
            for name in columns:
                numpy.testing.assert_array_equal(columns[name], h5py_file[group][name][:])

    def test_samples(self):
        import h5py
        for name in ("nlp_bn", "cv_bn", "nlp_pn", "nlp_ln"):
            with self.subTest(name=name):
                path = os.path.join(SAMPLES, f"{name}.h5")
                with h5py.File(path) as file:
                    told = {group: {key: file[group][key][()] for key in file[group]}
                            for group in ("scalars", "vectors", "steps", "evals")}
                with statrec.open(path) as run:
                    self.same(run, told)

    def test_final(self):
        import h5py
        with h5py.File(BN) as file:
            told = {name: file["final"][name][()] for name in file["final"]}
        with statrec.open(BN) as run:
            self.assertEqual(run.final["batches"], told["batches"])
            for name in ("tid_mean", "tid_var"):
                self.assertEqual(run.final[name].tolist(), told[name].tolist())

    def test_pairs(self):
        import h5py
        import numpy
        path = os.path.join(SAMPLES, "pairs_ln.h5")
        with h5py.File(path) as file:
            told = {name: file["final"][name][()] for name in file["final"]}
        with statrec.open(path) as run:
            self.assertEqual(run.info["pairs"], told["pair_x"].shape[1])
            self.assertEqual(set(run.final), set(told))
            for name in ("pair_x", "pair_y", "pair_feature"):
                self.assertEqual(run.final[name].dtype, told[name].dtype)
                numpy.testing.assert_array_equal(run.final[name], told[name])
        with statrec.open(BN) as run:
            self.assertNotIn("pair_x", run.final)

    def test_spectra_and_embeddings(self):
        import h5py
        import numpy
        seen = 0
        for name in sorted(os.listdir(SAMPLES)):
            if not name.endswith(".h5"):
                continue
            path = os.path.join(SAMPLES, name)
            with h5py.File(path) as file:
                tokens = {key: value[()] for key, value in file["embeddings/tokens"].items()} \
                    if "embeddings/tokens" in file else None
                spectra = {key: file["spectra"][key][()] for key in file["spectra"]} \
                    if "spectra" in file else None
            with statrec.open(path) as run:
                if tokens is not None:
                    found = run.embedding("tokens")
                    numpy.testing.assert_array_equal(found.step, tokens["step"])
                    numpy.testing.assert_array_equal(found.values, tokens["singular_values"])
                    self.assertEqual(run.embeddings, ["tokens"])
                    seen |= 1
                if spectra is not None:
                    site = run.site(1)
                    found = run.spectrum("gradient", site.name)
                    numpy.testing.assert_array_equal(found.step, spectra["step"])
                    numpy.testing.assert_array_equal(found.rows, spectra["rows"][:, 1])
                    numpy.testing.assert_array_equal(
                        found.values,
                        spectra["gradient"][:, site.offset:site.offset + site.width])
                    seen |= 2
        self.assertEqual(seen, 3)


class Slices(InDirectory):
    """Rows and columns as a list has them."""

    SLICES = [slice(None), slice(2, 5), slice(-3, None), slice(None, None, 3), slice(5, 1),
              slice(None, None, -1), slice(7, 1, -2), slice(100, None), slice(-100, 4, 2),
              slice(1, None, 100), slice(9, None, -4)]

    def compare(self):
        with statrec.open("run.h5") as run:
            whole = rows(run["mu_B"]["norm1"][:])
            loss = flat(run.steps["loss"])
            for which in self.SLICES:
                with self.subTest(which=which):
                    self.assertEqual(rows(run["mu_B"]["norm1"][which]), whole[which])
                    self.assertEqual(rows(run["mu_B"][which]), whole[which])
                    self.assertEqual(rows(run["mu_B"]["norm1"][which, 1:]),
                                     [row[1:] for row in whole[which]])
                    self.assertEqual(flat(run.steps.lazy("loss")[which]), loss[which])
            self.assertEqual(list(run["mu_B"]["norm1"][-2]), whole[-2])
            self.assertEqual(run["mu_B"]["norm1"][3, 2], whole[3][2])
            self.assertEqual(flat(run["rows"]["norm1"][...]), [8.0] * 10)
            self.assertEqual(rows(run["mu_B"]["norm1"]), whole)
            self.assertEqual(len(run["mu_B"]), 10)
            for wrong in (10, -11):
                self.assertRaises(IndexError, run["mu_B"]["norm1"].__getitem__, wrong)
            self.assertRaises(IndexError, run["rows"]["norm1"].__getitem__, (1, 1))
            self.assertRaises(TypeError, run["mu_B"]["norm1"].__getitem__, "norm1")
            column = run["mu_B"]["norm1"]
            self.assertEqual((column.shape, column.ndim, column.dtype), ((10, 3), 2, "float32"))
            self.assertEqual(run["rows"].shape, (10, 1))
            self.assertEqual(run.steps.lazy("step").dtype, "int64")
            self.assertIn("[10, 3] float32", repr(column))

    def setUp(self):
        super().setUp()
        record("run.h5", 10)

    def test_slices(self):
        self.compare()

    def test_without_numpy(self):
        with mock.patch.object(_arrays, "numpy", lambda: None):
            self.compare()
            with statrec.open("run.h5") as run:
                self.assertEqual(type(run.steps["loss"]).__name__, "array")
                self.assertEqual(run.vector("mu_B", 0)[1].tolist(), [2, 3, 4])
                self.assertRaises(TypeError, run["mu_B"]["norm1"].__getitem__, [1, 2])

    def test_in_small_blocks(self):
        with mock.patch.object(_columns, "_BLOCK", 7):
            self.compare()

    def test_without_numpy_in_small_blocks(self):
        with mock.patch.object(_columns, "_BLOCK", 7), \
                mock.patch.object(_arrays, "numpy", lambda: None):
            self.compare()

    @wants("numpy")
    def test_numpy_indexes(self):
        import numpy
        with statrec.open("run.h5") as run:
            column = run["mu_B"]["norm1"]
            whole = column[:]
            numpy.testing.assert_array_equal(column[[1, 5]], whole[[1, 5]])
            numpy.testing.assert_array_equal(column[whole[:, 0] > 4], whole[whole[:, 0] > 4])
            numpy.testing.assert_array_equal(numpy.asarray(column, dtype="f8"), whole)
            numpy.testing.assert_array_equal(column[2:4, [0, 2]], whole[2:4, [0, 2]])
            self.assertEqual(float(numpy.mean(column)), float(whole.mean()))
            whole[0, 0] = 99  # arrays belong to the reader
            self.assertEqual(column[0, 0], 1)

    def test_only_what_is_asked_for(self):
        with statrec.open("run.h5") as run:
            column, read = run["mu_B"]["norm1"], []
            fill = column._fill
            column._fill = lambda first, count, where: (read.append((first, count)),
                                                        fill(first, count, where))
            column[4]
            column[6:8]
            column[5:5]
            self.assertEqual(read, [(4, 1), (6, 2), (0, 0)])
            del read[:]
            with mock.patch.object(_columns, "_BLOCK", 12):
                column[::4]
            self.assertEqual(read, [(0, 1), (4, 1), (8, 1)])


class Growing(InDirectory):
    WRITER = ("import support, sys\n"
              "recorder, _ = support.begin('run.h5', flush_steps=1)\n"
              "for step, line in enumerate(sys.stdin, 1):\n"
              "    recorder.close() if line == 'close\\n' else support.put(recorder, step)\n"
              "    print('done', flush=True)\n")

    def test_reopened(self):
        import subprocess
        import sys
        writer = subprocess.Popen([sys.executable, "-c", self.WRITER], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, bufsize=1,
                                  env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.addCleanup(writer.wait, 60)
        self.addCleanup(writer.stdout.close)
        self.addCleanup(writer.stdin.close)

        def tell(line):
            writer.stdin.write(line)
            self.assertEqual(writer.stdout.readline(), "done\n")
        tell("step\n")
        run = statrec.open("run.h5")
        self.assertEqual((run.info["status"], run.info["path"]), ("running", "run.h5.part"))
        column, before = run["mu_B"]["norm1"], run.vector("mu_B", 0)
        tell("step\n")
        self.assertEqual((run.info["steps"], len(column)), (1, 1))
        self.assertIs(run.reopen(), run)
        self.assertEqual((run.info["steps"], len(column), len(before)), (2, 2, 1))
        self.assertEqual(list(column[1]), [2, 3, 4])
        tell("step\n")
        tell("close\n")
        self.assertEqual(run.reopen().info["status"], "complete")
        self.assertEqual((run.info["path"], len(column)), ("run.h5", 3))

    def test_reopening_fails(self):
        run = statrec.open(record("run.h5", 2))
        os.unlink("run.h5")
        self.fails("io", "run.h5: No such file", run.reopen)
        self.fails("state", "the file is closed", lambda: run.info)
        record("run.h5", 3)
        self.assertEqual(list(run.reopen().steps["step"]), [1, 2, 3])

    def test_twice(self):
        first, second = statrec.open(record("run.h5", 2)), statrec.open("run.h5")
        first.close()
        self.assertEqual(len(second.steps["step"]), 2)


class Wrong(InDirectory):
    def test_no_file(self):
        self.fails("io", "nosuch.h5: No such file or directory", statrec.open, "nosuch.h5")

    def test_no_run_file(self):
        with open("text.h5", "w", encoding="utf-8") as file:
            file.write("a text\n")
        self.fails("format", "text.h5", statrec.open, "text.h5")
        self.assertEqual(len(statrec.check("text.h5")), 1)

    def test_path_that_is_none(self):
        self.assertRaises(TypeError, statrec.open, 3)

    def test_truncated(self):
        shutil.copy(BN, "cut.h5")
        os.truncate("cut.h5", os.path.getsize(BN) // 2)
        self.fails("format", "cut.h5.*truncated", statrec.open, "cut.h5")

    @staticmethod
    def damage_header():
        """Flips a bit of the header of a dataset of run.h5."""
        import h5py
        with h5py.File("run.h5") as file:
            at = h5py.h5o.get_info(file["steps/lr"].id).addr + 7
        with open("run.h5", "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0] ^ 16
            file.seek(at)
            file.write(bytes([byte]))

    @wants("h5py")
    def test_damaged_dataset(self):
        """Intact data are read; opening, reading and check each name the damaged dataset."""
        with gzip.open(os.path.join(TOP, "tests", "files", "12-ranks.h5.gz")) as old:
            with open("run.h5", "wb") as file:  # without the backup of newer files
                shutil.copyfileobj(old, file)
        self.damage_header()
        with statrec.open("run.h5") as run:
            self.assertEqual(len(run.steps["loss"]), run.info["steps"])
            self.fails("format", "/steps/lr: damaged", run.steps.__getitem__, "lr")
            self.assertIn("/steps/lr: damaged", run.damage[0])
        faults = statrec.check("run.h5")
        self.assertIn("/steps/lr: damaged", faults[0])

    @wants("h5py")
    def test_damaged_header_with_a_backup(self):
        shutil.copy(BN, "run.h5")
        self.damage_header()
        with statrec.open("run.h5") as run, statrec.open(BN) as whole:
            self.assertEqual(flat(run.steps["lr"]), flat(whole.steps["lr"]))

    def test_no_steps(self):
        recorder, _ = begin("run.h5")
        recorder.begin_step(1)
        recorder.flush()
        recorder.abandon()
        with statrec.open("run.h5") as run:
            self.assertEqual((run.info["steps"], len(run.steps["loss"]), len(run.vector("mu_B"))),
                             (0, 0, 0))
            self.assertIsNone(run.final)

    def test_run_that_failed(self):
        recorder, _ = begin("run.h5")
        put(recorder, 1)
        recorder.close("failed", "out of memory")
        self.assertEqual(statrec.check("run.h5"), ["run.h5: failed, 1 steps readable: out of "
                                                   "memory"])


class Frames(InDirectory):
    @wants("numpy", "pandas")
    def test_frame(self):
        with statrec.open(BN) as run:
            frame = run.frame()
            self.assertEqual(frame.shape, (240, 7 * len(run.scalars)))
            self.assertEqual((frame.index.name, list(frame.index[:2])), ("step", [1, 2]))
            self.assertEqual(list(frame.columns.names), ["site", "statistic"])
            self.assertEqual(list(frame["encoder.final"]["tid_mean"]),
                             list(run.scalar("tid_mean", "encoder.final")))
            part = run.frame(["tid_var", "rows"], sites=["encoder.final", 0])
            self.assertEqual(list(part.columns),
                             [("encoder.final", "tid_var"), ("encoder.final", "rows"),
                              ("encoder.0.norm1", "tid_var"), ("encoder.0.norm1", "rows")])
            self.assertEqual(list(part[("encoder.final", "tid_var")]),
                             list(run.scalar("tid_var", "encoder.final")))

    @wants("numpy", "pandas")
    def test_tidy(self):
        with statrec.open(BN) as run:
            frame = run.frame(["tid_mean", "rows"], sites=[6, 2], tidy=True)
            self.assertEqual(list(frame.columns), ["step", "site", "tid_mean", "rows"])
            self.assertEqual(len(frame), 480)
            chosen = frame[frame["site"] == "encoder.final"]
            self.assertEqual(list(chosen["step"]), list(run.steps["step"]))
            self.assertEqual(list(chosen["tid_mean"]), list(run.scalar("tid_mean", 6)))

    @wants("numpy", "pandas")
    def test_of_steps_and_evaluations(self):
        with statrec.open(BN) as run:
            self.assertEqual(list(run.steps.frame()["loss"]), list(run.steps["loss"]))
            evals = run.evals.frame()
            self.assertEqual((evals.index.name, len(evals)), ("step", run.info["evals"]))

    @wants("numpy", "xarray")
    def test_dataset(self):
        with statrec.open(BN) as run:
            data = run.dataset()
            self.assertEqual(dict(data.sizes), dict(step=240, site=7, vector_step=2, column=448))
            self.assertEqual(data.tid_mean.dims, ("step", "site"))
            self.assertEqual(data.mu_B.dims, ("vector_step", "column"))
            self.assertEqual(data.loss.dims, ("step",))
            self.assertEqual(data.tid_mean.attrs["definition"], run.definition("tid_mean"))
            self.assertEqual(data.attrs["status"], "complete")
            self.assertEqual(list(data.tid_mean.sel(site="encoder.final", step=[5, 9]).values),
                             list(run.scalar("tid_mean", "encoder.final")[[4, 8]]))
            of_site = data.mu_B.where(data.column_site == "encoder.final", drop=True)
            self.assertEqual(of_site.values.tolist(), run.vector("mu_B", "encoder.final").tolist())
            self.assertEqual(data.mu_B[::-1, 70:72].values.tolist(),
                             run["mu_B"][::-1, 70:72].tolist())
            self.assertEqual(float(data.loss[3]), float(run.steps["loss"][3]))

    @wants("numpy", "xarray")
    def test_dataset_reads_what_is_used(self):
        with statrec.open(BN) as run, \
                mock.patch.object(run._reader, "read", wraps=run._reader.read) as read:
            data = run.dataset()
            before = len(read.mock_calls)
            data.tid_mean[5:7].values
            self.assertEqual(len(read.mock_calls), before + 1)
            group, name, _, first, count = read.mock_calls[-1].args[:5]
            self.assertEqual((group, name, first, count), ("scalars", "tid_mean", 5, 2))

    def test_without_them(self):
        result = python(f"""
            import sys
            sys.modules["pandas"] = sys.modules["xarray"] = None
            import statrec
            run = statrec.open({BN!r})
            for call in (run.frame, run.dataset, run.steps.frame):
                try: call()
                except ImportError as error: print(error)
        """)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 3, result.stderr)
        self.assertIn("statrec: frame() needs pandas", lines[0])
        self.assertIn("dataset() needs xarray", lines[1])
        self.assertIn("`pip install pandas`", lines[2])
