"""Recorder: arrays of every kind, and rejected arguments, with and without quiet."""
import array
import ctypes
import math
import os

import statrec
from support import InDirectory, begin, put, record, rows, wants


class Buffers(InDirectory):
    def row_of(self, *values):
        """Returns the file's rows after each of the values was put as a vector."""
        recorder, site = begin("run.h5", force=True)
        for step, value in enumerate(values, 1):
            recorder.begin_step(step)
            recorder.put_vector(site, "mu_B", value)
            recorder.end_step(step, 1)
        recorder.close()
        return rows(statrec.open("run.h5").vector("mu_B", site))

    def test_python(self):
        doubles = array.array("d", [1, 2, 3])
        values = [doubles, [1, 2, 3], (1.0, 2.0, 3.0), range(1, 4), memoryview(doubles),
                  memoryview(doubles.tobytes()).cast("d"), (ctypes.c_double * 3)(1, 2, 3),
                  array.array("f", [1, 2, 3]), array.array("q", [1, 2, 3]),
                  memoryview(array.array("d", [1, 0, 2, 0, 3, 0]))[::2],
                  doubles.buffer_info()[0]]
        self.assertEqual(self.row_of(*values), [[1, 2, 3]] * len(values))

    @wants("numpy")
    def test_numpy(self):
        import numpy
        base = numpy.array([1.0, 2.0, 3.0])
        fixed = base.copy()
        fixed.flags.writeable = False
        values = [base, fixed, base.astype("f4"), base.astype("i8"), base.astype(">f8"),
                  numpy.array([[1.0, 0], [2, 0], [3, 0]])[:, 0], base.reshape(1, 3)[0]]
        self.assertEqual(self.row_of(*values), [[1, 2, 3]] * len(values))
        self.assertEqual(base.tolist(), [1, 2, 3])

    @wants("torch")
    def test_torch(self):
        import torch
        tensor = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
        values = [tensor.data_ptr(), tensor, tensor.float().numpy(), tensor.numpy()]
        self.assertEqual(self.row_of(*values), [[1, 2, 3]] * len(values))

    def test_not_a_number_is_one(self):
        self.assertTrue(math.isnan(self.row_of([1.0, math.nan, 3.0])[0][1]))

    def test_refused(self):
        recorder, site = begin("run.h5")
        recorder.begin_step(1)
        for value, pattern in (([1, 2], "mu_B: 2 numbers for 3 features"),
                               (array.array("d", [1] * 4), "mu_B: 4 numbers for 3 features"),
                               (array.array("f", [1] * 4), "mu_B: 4 numbers for 3 features"),
                               ("123", "str holds no numbers"), (b"123", "bytes holds no numbers"),
                               ([1, 2, "x"], "list holds no numbers"), (1.5, "float holds no"),
                               ([[1, 2, 3]], "list holds no numbers"), (0, "address 0"),
                               (-8, "address -8")):
            with self.subTest(value=value):
                self.fails("usage", pattern, recorder.put_vector, site, "mu_B", value)
        recorder.put_vector(site, "mu_B", [1, 2, 3])
        recorder.end_step(1, 1)
        recorder.close()
        self.assertEqual(statrec.open("run.h5").info["status"], "complete")


class Refused(InDirectory):
    def test_unknown_option(self):
        with self.assertRaisesRegex(TypeError, "unknown option 'planed_steps'.*'planned_steps'"):
            statrec.Recorder("run.h5", planed_steps=3)
        with self.assertRaisesRegex(TypeError, "unknown option 'size'"):
            statrec.Recorder("run.h5", size=3)
        self.assertEqual(os.listdir(), [])

    def test_options_of_wrong_types(self):
        for name, value in (("seed", -1), ("seed", 2 ** 64), ("planned_steps", 1.5),
                            ("threads", 2 ** 31), ("program", 3), ("program", "a\0b"),
                            ("flush_seconds", "soon")):
            with self.subTest(name=name, value=value):
                self.fails("usage", name, statrec.Recorder, "run.h5", **{name: value})

    def test_existing_file(self):
        record("run.h5", 1)
        self.fails("exists", "run.h5", statrec.Recorder, "run.h5")
        record("run.h5", 2, force=True)
        self.assertEqual(statrec.open("run.h5").info["steps"], 2)

    def test_path(self):
        self.fails("io", "nowhere", statrec.Recorder, "nowhere/run.h5")
        self.fails("usage", "NUL", statrec.Recorder, "a\0b")

    def test_names(self):
        recorder, site = begin("run.h5")
        recorder.declare_scalar("ratio", "1", "update by weight")
        recorder.add_metric("f1")
        recorder.begin_step(1)
        for pattern, call, *arguments in (
                ("no vector 'mu_b' .did you mean 'mu_B'", recorder.put_vector, site, "mu_b", [1]),
                ("no scalar 'ration' .did you mean 'ratio'", recorder.put_scalar, site, "ration",
                 1),
                ("no scalar 'tid_meen'", recorder.put_scalar, site, "tid_meen", 1),
                ("no scalar 'x' was declared", recorder.put_step_scalar, "x", 1),
                ("no site 1; there are 1, from 0", recorder.put_vector, 1, "mu_B", [1, 2, 3]),
                ("no site -1", recorder.put_forward, -1, 1, [1], [1], [1]),
                ("no site 'norm1'", recorder.put_backward, "norm1", [1], [1]),
                ("no site 7", recorder.put_rows, 7, 1), ("no site 7", recorder.put_scalar, 7, 0, 1),
                ("a text is wanted", recorder.put_vector, site, 3, [1, 2, 3]),
                ("an integer is wanted, got 'a'", recorder.end_step, "a", 1),
                ("loss: a number is wanted", recorder.end_step, 1, 1, 0.0, "low")):
            with self.subTest(pattern=pattern):
                self.fails("usage", pattern, call, *arguments)
        recorder.end_step(1, 1)
        error = self.fails("usage", "no metric 'f2'", recorder.evaluate, 1, f2=1)
        self.assertIn("declared: f1", error.hint)
        self.fails("usage", "f1: a number is wanted", recorder.evaluate, 1, f1="high")
        recorder.evaluate(1, f1=1)
        recorder.close()  # the file is still valid
        self.assertEqual(statrec.open("run.h5").info["status"], "complete")

    def test_declarations(self):
        recorder, _ = begin("run.h5")
        for pattern, call, arguments, options in (
                ("no family 'bn'", recorder.add_site, ("b",), dict(width=1, eps=0, family="bn")),
                ("repeat: 'first'", recorder.add_site, ("b",),
                 dict(width=1, eps=0, repeat="first")),
                ("width: 4294967299", recorder.add_site, ("b",), dict(width=2 ** 32 + 3, eps=0)),
                ("better: 'up'", recorder.add_metric, ("f1",), dict(better="up")),
                ("scope: 'run'", recorder.declare_scalar, ("a", "1", "a"), dict(scope="run"))):
            with self.subTest(pattern=pattern):
                self.fails("usage", pattern, call, *arguments, **options)
        recorder.abandon()

    def test_what_the_library_refuses(self):
        recorder, _ = begin("run.h5")
        put(recorder, 3)
        self.fails("usage", "step 2 after step 3", recorder.begin_step, 2)
        self.fails("usage", "step 2 after step 3", recorder.begin_step, 4)  # the first one stays
        self.assertIn("step 2 after step 3", recorder.failure)
        self.fails("usage", "step 2 after step 3", recorder.close)
        self.assertEqual(statrec.open("run.h5").info["status"], "failed")
        self.assertEqual(statrec.open("run.h5").info["steps"], 1)

    def test_site_twice(self):
        recorder, _ = begin("run.h5")
        self.fails("usage", "norm1 declared twice", recorder.add_site, "norm1", width=2, eps=0)
        recorder.abandon()

    def test_out_of_order(self):
        recorder, _ = begin("run.h5")
        self.fails("state", "sr_end_step outside a step", recorder.end_step, 1, 1)
        recorder.abandon()

    def test_closed(self):
        recorder, site = begin("run.h5")
        put(recorder, 1)
        self.assertIn("open", repr(recorder))
        recorder.close()
        recorder.close()
        recorder.abandon()
        self.assertIn("closed", repr(recorder))
        for call, *arguments in ((recorder.begin_step, 2), (recorder.wants_vectors,),
                                 (recorder.put_vector, site, "mu_B", [1]), (recorder.flush,)):
            self.fails("state", "the recorder is closed", call, *arguments)

    def test_close_with_a_word_that_is_none(self):
        recorder, _ = begin("run.h5")
        put(recorder, 1)
        self.fails("usage", "'done'", recorder.close, "done")
        self.assertEqual(os.listdir(), ["run.h5"])


class Quiet(InDirectory):
    def test_keeps_the_first_failure(self):
        recorder, site = begin("run.h5", quiet=True)
        self.assertIsNone(recorder.failure)
        recorder.begin_step(1)
        self.assertIsNone(recorder.put_vector(site, "mu_b", [1, 2, 3]))
        self.assertIsNone(recorder.put_vector(site, "mu_B", [1]))
        recorder.put_vector(site, "mu_B", [1, 2, 3])
        recorder.end_step(1, 1)
        self.assertIn("no vector 'mu_b'", recorder.failure)
        recorder.close()
        self.assertEqual(rows(statrec.open("run.h5").vector("mu_B", 0)), [[1, 2, 3]])

    def test_file_that_cannot_be(self):
        recorder = statrec.Recorder("nowhere/run.h5", quiet=True)
        self.assertIn("nowhere", recorder.failure)
        self.assertEqual(recorder.add_site("a", width=1, eps=0), -1)
        self.assertEqual(recorder.declare_scalar("a", "1", "a"), -1)
        self.assertFalse(recorder.wants_vectors())
        self.assertEqual((recorder.vectors_every, recorder.projected_bytes, recorder.own_seconds),
                         (0, -1, 0.0))
        put(recorder, 1)
        recorder.evaluate(1, f1=1)
        recorder.flush()
        recorder.close()
        self.assertIn("nowhere", recorder.failure)

    def test_failure_of_the_library(self):
        recorder, _ = begin("run.h5", quiet=True)
        put(recorder, 2)
        put(recorder, 1)
        put(recorder, 3)
        self.assertIn("step 1 after step 2", recorder.failure)
        recorder.close()
        self.assertIn("step 1 after step 2", statrec.open("run.h5").info["reason"])

    def test_closed(self):
        recorder, _ = begin("run.h5", quiet=True)
        put(recorder, 1)
        recorder.close()
        self.assertIsNone(recorder.failure)
        put(recorder, 2)
        self.assertIn("closed", recorder.failure)
