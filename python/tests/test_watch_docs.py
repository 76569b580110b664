"""The examples of docs/python-watch.md run as they are printed."""
import inspect
import os
import re
import types
import unittest

from watch_help import fake_watch

import statrec
import torch
from statrec._watching import _adapters
from statrec.watch import Watch
from torch import nn

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 2, "docs",
                    "python-watch.md")


class Docs(unittest.TestCase):
    def setUp(self):
        with open(PAGE, encoding="utf-8") as page:
            self.blocks = re.findall(r"^```python\n(.*?)^```$", page.read(),
                                     re.MULTILINE | re.DOTALL)
        model = nn.ModuleDict({"in": nn.Linear(5, 4), "norm": nn.LayerNorm(4)})
        model.forward = lambda batch: model["norm"](model["in"](batch))
        self.runs = []
        self.names = dict(
            model=model, batch=torch.randn(6, 5), loader=torch.randn(3, 6, 5),
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            torch=torch, statrec=types.SimpleNamespace(watch=self.watch))

    def watch(self, model, path, sites=None, **options):
        self.runs.append(fake_watch(model, **({"sites": sites} if sites else {}), **options))
        return self.runs[-1]

    def test_table_of_modules(self):
        with open(PAGE, encoding="utf-8") as page:
            self.assertIn(_adapters.table(), page.read())

    def test_signature(self):
        """statrec.watch shows the parameters that Watch has, with its defaults."""
        shown = inspect.signature(statrec.watch).parameters
        own = dict(inspect.signature(Watch).parameters)
        del own["recorder"]
        self.assertEqual([(one.name, one.kind, one.default) for one in shown.values()],
                         [(one.name, one.kind, one.default) for one in own.values()])
        for name in shown:
            self.assertRegex(statrec.watch.__doc__, rf"\b{name}\b")

    def test_unknown_option(self):
        with self.assertRaisesRegex(TypeError, "watch: unknown option 'evry'; did you mean 'every'"):
            fake_watch(nn.LayerNorm(3), evry=2)

    def test_blocks(self):
        self.assertEqual(len(self.blocks), 5)
        for text in self.blocks:
            exec(compile(text, "docs/python-watch.md", "exec"), self.names)
        loop, context, numbers, domains = [run.recorder for run in self.runs]
        self.assertEqual([len(run.recorder.steps) for run in self.runs], [3, 0, 1, 3])
        self.assertEqual([run.recorder.status for run in self.runs], ["complete"] * 4)
        self.assertEqual([len(step["passes"]) for step in domains.steps], [1] * 3)
        self.assertEqual([list(step["numbers"].values()) for step in domains.steps], [[1]] * 3)
        self.assertEqual(context.options["planned_steps"], 1000)
        self.assertEqual(numbers.steps[0]["scalars"]["norm", 1002], 2.5)
        self.assertEqual(numbers.evals[0]["accuracy"], 71.5)


if __name__ == "__main__":
    unittest.main()
