"""Batches that loaders give statrec.audit, wrong arguments, and its pages and files."""
import contextlib
import copy
import inspect
import io
import math
import os
import re
import tempfile
import types
import warnings

from audit_cases import Case, accuracy, mean, mlp, pairs, trained

import statrec
import torch
import torch.nn.functional as F
from statrec import _audit
from statrec._auditing import _audit_compare
from torch import nn

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 2, "docs",
                    "audit.md")


class Inputs(Case):
    """Batches that loaders yield."""

    def model(self):
        class Named(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = mlp(nn.BatchNorm1d)

            def forward(self, input_ids=None, labels=None):
                logits = self.inner(input_ids)
                loss = None if labels is None else F.cross_entropy(logits, labels)
                return types.SimpleNamespace(loss=loss, logits=logits)
        model = Named()
        trained(model.inner, pairs())
        model.inner[4].running_mean.add_(2)
        return model

    def test_dicts_with_their_loss(self):
        model = self.model()
        batches = [{"input_ids": x, "labels": y} for x, y in pairs(4)]
        want = statrec.audit(model.inner, pairs(4), F.cross_entropy)
        for audit in (statrec.audit(model, batches),
                      statrec.audit(model, batches, lambda out, batch: F.cross_entropy(
                          out.logits, batch["labels"])),
                      statrec.audit(model, [(b["input_ids"], b["labels"], 0) for b in batches],
                                    lambda out, batch: F.cross_entropy(out.logits, batch[1]),
                                    call=lambda model, batch: model(batch[0]))):
            self.assertEqual(audit.measures["loss"].unit, "nats")
            self.assertEqual(audit.measures["loss"].values, want.measures["loss"].values)
            self.assertEqual((audit.verdict, audit.culprit), ("severe", "inner.4"))

    def test_outputs_of_dicts(self):
        audit = statrec.audit(self.model(), [{"input_ids": x} for x, _ in pairs(8)])
        self.assertEqual((list(audit.measures), audit.verdict, audit.culprit),
                         (["outputs"], "severe", "inner.4"))
        self.assertIn("severe: the outputs with running statistics are by", str(audit))

    def test_outputs(self):
        model, batches = self.model().inner, [x for x, _ in pairs(8)]
        audit = statrec.audit(model, batches)
        twin = copy.deepcopy(model).double()
        for got, x in zip(audit.measures["outputs"].values["running"], batches):
            with torch.no_grad():
                running, batch = (copy.deepcopy(twin).train(mode)(x.double())
                                  for mode in (False, True))
            self.near(got, ((running - batch).norm() / batch.norm()).item())
        self.assertEqual(audit.measures["outputs"].values["batch"], [0.0] * 8)

    def test_target_of_inputs(self):
        seen = []
        statrec.audit(mlp(nn.BatchNorm1d), [x for x, _ in pairs(2)],
                      lambda output, target: seen.append(target.shape) or output.mean())
        self.assertEqual(set(seen), {(64, 5)})

    def test_wrong_arguments(self):
        model, batches = mlp(nn.BatchNorm1d), pairs(2)
        for error, text, work in (
                (ValueError, "no batch", lambda: statrec.audit(model, [])),
                (ValueError, "batches: at least 1",
                 lambda: statrec.audit(model, batches, batches=0)),
                (ValueError, "yields 3 values", lambda: statrec.audit(model, [(1, 2, 3)])),
                (TypeError, "Module is wanted", lambda: statrec.audit(lambda x: x, batches)),
                (TypeError, "loss: a function", lambda: statrec.audit(model, batches, loss=3)),
                (TypeError, "a number is wanted",
                 lambda: statrec.audit(model, batches, lambda output, target: "much")),
                (ValueError, "no normalization module",
                 lambda: statrec.audit(nn.Linear(5, 2), batches)),
                (ValueError, "none of the 2 normalizations has running statistics",
                 lambda: statrec.audit(mlp(nn.LayerNorm), batches)),
                (ValueError, "run it on one batch first",
                 lambda: statrec.audit(nn.Sequential(nn.LazyBatchNorm1d()), batches))):
            with self.assertRaisesRegex(error, text):
                work()

    def test_norms_that_are_not_recognized(self):
        class StrangeNorm(nn.Module):
            def forward(self, x):
                return x / (1 + x.abs().sum())
        audit = statrec.audit(nn.Sequential(StrangeNorm(), nn.BatchNorm1d(5)), pairs(2))
        self.assertIn("not recognized: StrangeNorm x1", str(audit))

    def test_one_batch(self):
        audit = statrec.audit(mlp(nn.BatchNorm1d), pairs(1), F.cross_entropy)
        self.assertEqual(audit.verdict, "no verdict")
        self.assertIn("one batch has no interval", str(audit))

    def test_memory(self):
        self.assertEqual(statrec.audit(mlp(nn.BatchNorm1d), pairs(3)).memory, 3 * 64 * (5 * 4 + 8))

    def test_signatures(self):
        for name, own in (("audit", _audit.audit), ("compare", _audit_compare.compare)):
            shown, kept = (inspect.signature(function).parameters
                           for function in (getattr(statrec, name), own))
            self.assertEqual([(one.name, one.kind, one.default) for one in shown.values()],
                             [(one.name, one.kind, one.default) for one in kept.values()])
            for parameter in shown:
                self.assertRegex(getattr(statrec, name).__doc__, rf"\b{parameter}\b")


class Pages(Case):
    def setUp(self):
        self.where = tempfile.mkdtemp()
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.where)

    def test_html(self):
        model = trained(mlp(nn.BatchNorm1d), pairs())
        model[1].running_mean += 5
        page = statrec.audit(model, pairs(), F.cross_entropy)._repr_html_()
        self.assertIn("culprit: 1", page)
        self.assertIn("<table>", page)
        self.assertEqual(page.count("<table>"), page.count("</table>"))

    def test_file(self):
        try:
            statrec._library.library()
        except statrec.Error as error:
            self.skipTest(str(error))
        model, batches = trained(mlp(nn.BatchNorm1d), pairs()), pairs()
        model[4].running_mean += 2
        audit = statrec.audit(model, batches, F.cross_entropy, accuracy, path="audit.h5")
        self.assertEqual(statrec.check("audit.h5"), [])
        with statrec.open("audit.h5") as run:
            self.assertEqual((run.info["steps"], run.info["status"]), (12, "complete"))
            for site in audit.sites:
                found = [float(value) for value in run.scalar("tid_mean", site.name)]
                self.near(mean(found), site.tid_mean.value, 1e-5)
                self.near(float(run.scalar("audit_share", site.name)[-1]), site.share, 1e-5)
                mu = [float(value) for value in run.vector("mu", site.name)[0]]
                self.assertTrue(torch.allclose(torch.tensor(mu), dict(model.named_modules())[
                    site.name].running_mean))
            for name, regime in (("loss", "running"), ("loss_batch", "batch"),
                                 ("accuracy_recomputed", "recomputed")):
                got = [float(value) for value in run.evals[name]]
                want = audit.measures[name.split("_")[0]].values[regime]
                for a, b in zip(got, want):
                    self.near(a, b)
            self.assertEqual(run.metrics["loss"].unit, "nats")
            self.assertTrue(math.isnan(run.sites["1"].alpha))
        with self.assertRaisesRegex(statrec.Error, "exists"):
            statrec.audit(model, [], path="audit.h5")

    def test_docs(self):
        with open(PAGE, encoding="utf-8") as page:
            blocks = re.findall(r"^```python\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), 3)
        names = {}
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as printed:
            warnings.simplefilter("error")
            for text in blocks:
                exec(compile(text, "docs/audit.md", "exec"), names)
        self.assertEqual((names["audit"].verdict, names["audit"].culprit), ("severe", "4"))
        self.assertEqual(names["again"].verdict, "nothing")
        self.assertIn("culprit: 4", printed.getvalue())
