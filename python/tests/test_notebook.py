"""docs/notebook.ipynb runs: by nbclient if installed, otherwise its cells one after the other."""
import json
import os
import unittest
import warnings

import statrec
from support import TOP, InDirectory, wants

NOTEBOOK = os.path.join(TOP, "docs", "notebook.ipynb")


def loaded():
    try:
        return statrec._library.library()
    except statrec.Error:
        return None


@unittest.skipUnless(os.path.exists(NOTEBOOK), "no docs")
@unittest.skipUnless(loaded(), "no libstatrec")
class Notebook(InDirectory):
    @wants("nbclient", "nbformat", "ipykernel", "torch")
    def test_executed(self):
        import nbclient
        import nbformat
        notebook = nbformat.read(NOTEBOOK, 4)
        nbclient.NotebookClient(notebook, timeout=300).execute()
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        self.assertGreaterEqual(sum("text/html" in one.get("data", {}) for one in outputs), 3)

    @wants("torch")
    def test_cells(self):
        """The code of the cells, without a kernel; the repository has no outputs of them."""
        with open(NOTEBOOK, encoding="utf-8") as file:
            cells = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
        names = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for cell in cells:
                self.assertEqual(cell["outputs"], [])
                exec(compile("".join(cell["source"]), NOTEBOOK, "exec"), names)
        self.assertEqual(names["file"].info["steps"], 100)
        self.assertIn("inference", str(names["file"].diagnose()).lower())


if __name__ == "__main__":
    unittest.main()
