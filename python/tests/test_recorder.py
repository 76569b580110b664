"""Recorder: values read back from the file equal the arguments."""
import array
import math
import os
import sys

import statrec
from support import InDirectory, begin, put, put_one, python, record, rows


def steps_seen_elsewhere(path):
    """Returns the number of steps in a file, read by another process."""
    return python(f"import statrec; print(statrec.open({path!r}).info['steps'])").stdout


class RoundTrip(InDirectory):
    def test_options(self):
        options = dict(program="me", version="7", command="me --fast", config="a = 1\n", model="m",
                       data="d", task="t", loss_reduction="mean", seed=2 ** 64 - 1, threads=3,
                       ranks="rank 0 of 4")
        recorder = statrec.Recorder("run.h5", **options)
        recorder.add_site("a", width=1, eps=0)
        put_one(recorder)
        recorder.close()
        info = statrec.open("run.h5").info
        self.assertEqual({name: info[name] for name in options}, options)

    def test_program_of_its_own(self):
        with statrec.Recorder("run.h5") as recorder:
            recorder.add_site("a", width=1, eps=0)
            put_one(recorder)
        self.assertEqual(statrec.open("run.h5").info["program"], os.path.basename(sys.argv[0]))

    def test_sites(self):
        recorder = statrec.Recorder("run.h5")
        numbers = [recorder.add_site("bn", "bn", "conv", "sigma", width=3, depth=0, eps=1e-5,
                                     alpha=0.9, alpha_bwd=0.5),
                   recorder.add_site("ln", norm="ln", kind="encoder", family="row", width=4,
                                     depth=2, eps=1e-6, repeat="merge", observed=True)]
        self.assertEqual(numbers, [0, 1])
        put_one(recorder, (3, 4))
        recorder.close()
        first, second = statrec.open("run.h5").sites.values()
        self.assertEqual((first.name, first.norm, first.kind, first.family, first.width,
                          first.depth, first.eps, first.alpha, first.observed, first.merged),
                         ("bn", "bn", "conv", "sigma", 3, 0, 1e-5, 0.9, False, False))
        self.assertEqual((second.name, second.family, second.width, second.offset, second.depth,
                          second.observed, second.merged),
                         ("ln", "row", 4, 3, 2, True, True))
        self.assertEqual(first.alpha_bwd, 0.5)
        self.assertTrue(math.isnan(second.alpha) and math.isnan(second.alpha_bwd))

    def test_layer_scale(self):
        with statrec.Recorder("run.h5") as recorder:
            recorder.add_site("a", norm="bn", width=4, eps=0.0, layer_scale=2)
            put_one(recorder, (4,))
        site = statrec.open("run.h5").sites["a"]
        self.assertEqual((site.layer_scale, site.called), (2, "bn+ls"))

    def test_forward_and_backward(self):
        recorder, site = begin("run.h5")
        recorder.begin_step(4)
        recorder.put_forward(site, 8, [1, 2, 3], [4, 5, 6], [5, 9, 15], gamma=[2, 2, 4],
                             samples=2, padded=1)
        recorder.put_backward(site, [1, -1, 0.5], [4, 5, 6], [7, 8, 9])
        recorder.end_step(2, 8, 0.5, 1.25, 0.1, 3.5)
        recorder.close()
        run = statrec.open("run.h5")
        for name, expected in (("mu_B", [1, 2, 3]), ("sigma2_B", [4, 5, 6]),
                               ("psi2_B", [5, 9, 15]), ("gamma", [2, 2, 4]),
                               ("sum_g", [1, -1, 0.5])):
            with self.subTest(name=name):
                self.assertEqual(rows(run.vector(name, "norm1")), [expected])
        sum_gx = rows(run.vector("sum_gx", site))[0]
        for got, s, variance in zip(sum_gx, [4, 5, 6], [4, 5, 6]):
            self.assertAlmostEqual(got, s / math.sqrt(variance + 1e-5), places=5)
        self.assertEqual([float(run.scalar(name, site)[0])
                          for name in ("rows", "samples", "padded")], [8, 2, 1])
        self.assertEqual([run.steps[name][0] for name in
                          ("step", "update", "tokens", "epoch", "loss", "lr", "grad_norm")],
                         [4, 2, 8, 0.5, 1.25, 0.1, 3.5])
        self.assertGreater(run.scalar("dx_norm", site)[0], 0)

    def test_passes_of_all_sites(self):
        """put_passes and put_vectors are put_forward, put_backward and put_vector of each site."""
        table = array.array("d", [0.5 + 0.25 * i for i in range(7 * 5)])  # [7, 3 + 2]
        running = array.array("d", [3, 2, 1, 5, 4])
        at, now = table.buffer_info()[0], running.buffer_info()[0]
        places = [(0, at, now, slice(0, 3)), (1, at + 24, now + 24, slice(3, 5))]
        for path, together in (("one.h5", False), ("all.h5", True)):
            with statrec.Recorder(path) as recorder:
                for name, width in (("a", 3), ("b", 2)):
                    recorder.add_site(name, width=width, eps=1e-5, alpha=0.9)
                recorder.begin_step(1)
                if together:
                    recorder.put_passes([(0, 8, 2, 1, at, 40, True), (1, 9, 0, 0, at + 24, 40, False)])
                    recorder.put_vectors("mu", [(site, where) for site, _, where, _ in places])
                else:
                    for site, _, _, part in places:
                        row = [table[5 * i:5 * i + 5][part] for i in range(7)]
                        recorder.put_forward(site, 9 if site else 8, *row[:3],
                                             None if site else row[6], 0 if site else 2, 1 - site)
                        recorder.put_backward(site, *row[3:6])
                        recorder.put_vector(site, "mu", running[part])
                recorder.end_step(1, 8)
        one, both = statrec.open("one.h5"), statrec.open("all.h5")
        for site in ("a", "b"):
            for name in one.vectors:
                self.assertEqual(rows(one.vector(name, site)), rows(both.vector(name, site)), name)
            for name in one.scalars:
                self.assertEqual(str(one.scalar(name, site)[0]), str(both.scalar(name, site)[0]))
        self.assertGreater(both.scalar("dx_norm", "b")[0], 0)

    def test_passes_without_squares_or_site(self):
        table = array.array("d", [1.0] * 21)
        recorder, site = begin("run.h5")
        recorder.begin_step(1)
        recorder.put_passes([(site, 8, 0, 0, table.buffer_info()[0], 24, True)], False)
        recorder.end_step(1, 8)
        recorder.begin_step(2)
        for call in (lambda: recorder.put_passes([(7, 8, 0, 0, table.buffer_info()[0], 24, True)]),
                     lambda: recorder.put_vectors("mu", [(7, table.buffer_info()[0])])):
            with self.assertRaisesRegex(statrec.Error, "site 7"):
                call()
        with self.assertRaises(statrec.Error):
            recorder.close()
        self.assertNotIn("dx_norm", statrec.open("run.h5").scalars)

    def test_without_squares_there_is_no_norm(self):
        recorder, site = begin("run.h5")
        recorder.begin_step(1)
        recorder.put_forward(site, 8, [1, 2, 3], [4, 5, 6], [5, 9, 15])
        recorder.put_backward(site, [1, -1, 0.5], [4, 5, 6])
        recorder.end_step(1, 8)
        recorder.close()
        run = statrec.open("run.h5")
        with self.assertRaisesRegex(KeyError, "dx_norm was not recorded"):
            run.scalar("dx_norm", site)
        self.assertTrue(math.isnan(run.steps["loss"][0]))

    def test_vectors_and_scalars_by_name(self):
        recorder, site = begin("run.h5")
        recorder.begin_step(1)
        recorder.put_rows(site, 5)
        recorder.put_vector(site, "mu_B", [1, 2, 3])
        recorder.put_vector(site, "sigma2", [4, 4, 4])
        recorder.put_scalar(site, "g_sigma2_rowmean", 0.25)
        recorder.end_step(1, 5)
        recorder.close()
        run = statrec.open("run.h5")
        self.assertEqual(rows(run.vector("mu_B", site)), [[1, 2, 3]])
        self.assertEqual(rows(run.vector("sigma2", site)), [[4, 4, 4]])
        self.assertEqual(run.scalar("g_sigma2_rowmean", site)[0], 0.25)
        self.assertEqual(run.scalar("rows", site)[0], 5)

    def test_declared(self):
        recorder, site = begin("run.h5")
        ratio = recorder.declare_scalar("ratio", "1", "update by weight")
        entropy = recorder.declare_scalar("entropy", "nats", "of attention", scope="step")
        self.assertNotEqual(ratio, entropy)
        for step, by_name in ((1, False), (2, True)):
            recorder.begin_step(step)
            recorder.put_scalar(site, "ratio" if by_name else ratio, 0.5 * step)
            recorder.put_step_scalar("entropy" if by_name else entropy, 2.5 * step)
            recorder.end_step(step, 8)
        recorder.close()
        run = statrec.open("run.h5")
        self.assertEqual(list(run.scalar("ratio", site)), [0.5, 1.0])
        self.assertEqual(list(run.steps["entropy"]), [2.5, 5.0])
        self.assertIn("ratio", run.scalars)
        self.assertEqual([vars(run.declared[name]) for name in ("ratio", "entropy")], [
            dict(name="ratio", unit="1", definition="update by weight", scope="site"),
            dict(name="entropy", unit="nats", definition="of attention", scope="step")])
        self.assertEqual(run.definition("ratio"), "update by weight")
        self.assertEqual(run.definition("entropy"), "of attention")

    def test_evaluations(self):
        recorder, _ = begin("run.h5")
        recorder.add_metric("valid.f1", "percent", "span F1", better="more")
        recorder.add_metric("self", better=-1)
        recorder.add_metric("step_time")
        recorder.evaluate(0, self=3.0)
        put(recorder, 1)
        recorder.evaluate(1, 0.5, **{"valid.f1": 61, "self": 2.0})
        recorder.close()
        run = statrec.open("run.h5")
        self.assertEqual(list(run.evals["step"]), [0, 1])
        self.assertEqual(list(run.evals["self"]), [3, 2])
        self.assertEqual(run.evals["valid.f1"][1], 61)
        self.assertEqual(run.evals["epoch"][1], 0.5)
        for name in ("valid.f1", "epoch"):
            self.assertTrue(math.isnan(run.evals[name][0]))
        self.assertEqual([(m.name, m.unit, m.definition, m.better)
                          for m in run.metrics.values()],
                         [("valid.f1", "percent", "span F1", "more"), ("self", "", "", "less"),
                          ("step_time", "", "", "")])

    def test_projection_and_spacing(self):
        recorder, _ = begin("run.h5", planned_steps=100, vectors_every=4)
        self.assertGreater(recorder.projected_bytes, 1000)
        self.assertEqual(recorder.vectors_every, 4)
        kept = []
        for step in range(1, 9):
            recorder.begin_step(step)
            kept += [step] if recorder.wants_vectors() else []
            recorder.end_step(step, 1)
        recorder.close()
        self.assertEqual(kept, [4, 8])
        self.assertEqual(list(statrec.open("run.h5").vector_steps), [4, 8])

    def test_no_projection(self):
        recorder, _ = begin("run.h5")
        self.assertEqual(recorder.projected_bytes, -1)
        recorder.abandon()

    def test_own_seconds(self):
        recorder, _ = begin("run.h5")
        put(recorder, 1)
        before = recorder.own_seconds
        recorder.add_seconds(100)
        self.assertGreaterEqual(recorder.own_seconds, before + 100)
        self.assertLess(before, 60)
        recorder.close()

    def test_flush(self):
        recorder, _ = begin("run.h5", flush_seconds=1e9, flush_steps=1000)
        recorder.flush()  # before the first step there is nothing to write
        put(recorder, 1)
        self.assertEqual(steps_seen_elsewhere("run.h5"), "0\n")
        recorder.flush()
        self.assertEqual(steps_seen_elsewhere("run.h5"), "1\n")
        recorder.close()

    def test_own_growing_file(self):
        recorder, _ = begin("run.h5", flush_steps=1)
        error = self.fails("state", "and no step is in it yet", statrec.open, "run.h5")
        self.assertIn("flush()", error.hint)
        put(recorder, 1)
        for name in ("run.h5", "run.h5.part", os.path.abspath("run.h5")):
            self.assertEqual(statrec.open(name).info["steps"], 1)
        self.fails("io", "other.h5: No such file", statrec.open, "other.h5")
        recorder.close()
        self.assertEqual(statrec.open("run.h5").info["steps"], 1)

    def test_copied_rows(self):
        record("run.h5", 5)
        recorder, _ = begin("run.h5", resume=True)
        told = recorder.copy_rows("run.h5", up_to_step=3)
        put(recorder, 4, shift=100.0)
        recorder.close()
        self.assertEqual((told["steps"], told["lost_steps"]), (3, 0))
        self.assertEqual(set(told), {"steps", "vectors", "evals", "lost_steps", "lost_vectors",
                                     "lost_evals", "running_step"})
        run = statrec.open("run.h5")
        self.assertEqual(list(run.steps["step"]), [1, 2, 3, 4])
        self.assertEqual([row[0] for row in run.vector("mu_B", 0)], [1, 2, 3, 104])

    def test_close_status_and_reason(self):
        recorder, _ = begin("run.h5")
        put(recorder, 1)
        recorder.close("diverged", "the loss\nis " + "not " * 100 + "finite \u00fc")
        info = statrec.open("run.h5").info
        self.assertEqual(info["status"], "diverged")
        self.assertTrue(info["reason"].startswith("the loss is not not"))

    def test_path_like(self):
        import pathlib
        record(pathlib.Path("run.h5"), 1)
        self.assertEqual(statrec.open(pathlib.Path("run.h5")).info["steps"], 1)
        record(b"bytes.h5", 1)
        self.assertEqual(statrec.open(b"bytes.h5").info["steps"], 1)
