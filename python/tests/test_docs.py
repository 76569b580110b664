"""The examples of docs/python.md run as they are printed."""
import os
import re
import shutil
import warnings

import statrec
from support import SAMPLES, TOP, InDirectory, module
from test_plot import drawing


def blocks():
    """Returns the Python blocks of the page by their heading, in order."""
    with open(os.path.join(TOP, "docs", "python.md"), encoding="utf-8") as page:
        sections = re.split(r"^##+ (.*)$", page.read(), flags=re.MULTILINE)
    return {title: re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
            for title, text in zip(sections[1::2], sections[2::2])}


class Docs(InDirectory):
    def samples(self, **names):
        for name, sample in names.items():
            shutil.copy(os.path.join(SAMPLES, f"{sample}.h5"), f"{name}.h5")

    def run_blocks(self, title, **names):
        """Runs the blocks below a heading; the names that they leave."""
        names = {"statrec": statrec, **names}
        texts = blocks()[title]
        self.assertTrue(texts)
        for text in texts:
            exec(compile(text, f"docs/python.md: {title}", "exec"), names)
        return names

    def test_reading(self):
        self.samples(run="nlp_bn")
        text = blocks()["Reading a run"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            names = {}
            exec(text[0].replace("run.close()", ""), names)
            exec(text[1], names)
        self.assertEqual(names["run"].info["steps"], 240)

    def test_growing(self):
        self.samples(run="nlp_bn")
        self.assertEqual(self.run_blocks("A run that is being recorded")["run"].info["status"],
                         "complete")

    def test_frames(self):
        for name in ("numpy", "pandas", "xarray"):
            if module(name) is None:
                self.skipTest(f"no {name}")
        self.run_blocks("pandas and xarray",
                        run=statrec.open(os.path.join(SAMPLES, "nlp_bn.h5")))

    @drawing
    def test_figures(self):
        self.samples(cv="cv_bn", nlp="nlp_bn", bn="nlp_bn", ln="nlp_ln")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.run_blocks("Figures and tables", run=statrec.open("bn.h5"))
        self.assertTrue(os.path.exists("fig2.pdf"))

    def test_recording(self):
        ones = [1.0] * 64
        self.run_blocks("Recording with numbers of your own", rows=8, mean=ones, variance=ones,
                        mean_square=[2.0] * 64, gamma=ones, sum_g=ones, sum_gc=ones, sum_gg=ones,
                        loss=0.5, lr=0.1)
        run = statrec.open("run.h5")
        self.assertEqual((run.info["steps"], run.info["status"]), (1000, "complete"))
        self.assertEqual(list(run.evals["valid_f1"]), [61.5])
        self.assertEqual(statrec.check("run.h5"), [])
