"""Run files of every format revision (tests/files), read by statrec.open."""
import glob
import gzip
import os
import shutil

import statrec
from support import InDirectory, TOP

# Name: status, steps, last loss, sites, largest dist_mu of the first site with one, metrics, rows of vectors.
FILES = {
    "01-first-images.h5": ("complete", 8, 4.19, 3, 0.122, 8, 2),
    "01-first-killed.h5.part": ("running", 66, 3.69, 7, 0.408, 8, 16),
    "01-first.h5": ("complete", 12, 3.76, 7, 0.408, 8, 3),
    "02-observed.h5": ("complete", 12, 3.76, 7, 0.408, 12, 3),
    "03-theorem-1.h5": ("complete", 12, 3.78, 7, 0.408, 12, 3),
    "04-scales.h5": ("complete", 12, 3.84, 7, 0.371, 12, 3),
    "05-commented-options.h5": ("complete", 12, 3.78, 7, 0.408, 12, 3),
    "06-relative-distances.h5": ("complete", 12, 3.78, 7, 0.408, 12, 3),
    "06-row-free-var.h5": ("complete", 12, 3.78, 7, None, 12, 3),
    "07-norms-of-dx.h5": ("complete", 12, 3.78, 7, 0.408, 12, 3),
    "09-text.h5": ("complete", 12, 3.78, 7, 0.408, 4, 3),
    "10-meaning.h5": ("complete", 12, 3.78, 7, 0.408, 4, 3),
    "11-metrics-images.h5": ("complete", 8, 4.23, 3, 0.11, 5, 2),
    "11-metrics.h5": ("complete", 12, 3.78, 7, 0.408, 8, 3),
    "12-ranks.h5": ("complete", 12, 3.79, 14, 0.481, 4, 3),
    "13-sums-killed.h5.part": ("running", 15, 3.85, 7, 0.408, 4, 3),
    "13-sums.h5": ("complete", 12, 3.78, 7, 0.408, 8, 3),
    "14-last-killed.h5.part": ("running", 12, 3.78, 7, 0.408, 4, 3),
    "14-last.h5": ("complete", 12, 3.79, 14, 0.481, 8, 3),
}


def facts(path):
    """A row of FILES."""
    with statrec.open(path) as run:
        largest = None
        for site in run.sites if "dist_mu" in run.scalars else ():
            values = [float(v) for v in run.scalar("dist_mu", site) if v == v]
            if values:
                largest = float(f"{max(values):.3g}")
                break
        return (run.info["status"], len(run.steps["step"]), round(float(run.steps["loss"][-1]), 2), len(run.sites),
                largest, len(run.metrics), len(run.vector_steps))


class OldFiles(InDirectory):
    """Each file, unpacked."""

    def test_all(self):
        found = {}
        for packed in sorted(glob.glob(os.path.join(TOP, "tests", "files", "*.h5*.gz"))):
            name = os.path.basename(packed)[:-3]
            with gzip.open(packed) as source, open(name, "wb") as to:
                shutil.copyfileobj(source, to)
            found[name] = facts(name)
        self.maxDiff = None
        self.assertEqual(found, FILES)
