"""bench/cuda_nn.py without a GPU: both parts run, and print their tables."""
import os
import subprocess
import sys
import unittest

from support import TOP, wants

SCRIPT = os.path.join(TOP, "bench", "cuda_nn.py")


@wants("torch")
@unittest.skipUnless(os.path.exists(SCRIPT), "no bench directory")
class Dry(unittest.TestCase):
    def test_both_parts(self):
        import statrec.nn

        words = [sys.executable, SCRIPT, "--dry", "--features", "8", "--eager"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [row.split("\t") for row in done.stdout.splitlines() if not row.startswith("#")]
        self.assertEqual([row[1] for row in rows if row[0] == "accuracy"], list(statrec.nn.METHODS))
        self.assertEqual([row[2] for row in rows if row[0] == "speed"], list(statrec.nn.METHODS))
        for row in rows:
            if row[0] == "accuracy":
                self.assertLess(max(map(float, row[2:])), 24, row)
                self.assertGreater(max(map(float, row[2:])), 0, row)
            else:
                self.assertEqual(row[3], "BatchNorm1d" if row[2] in ("bn", "pn", "rbn") else row[3])
                self.assertAlmostEqual(float(row[6]) * float(row[5]) / float(row[4]), 1, delta=0.2)
        self.assertEqual(done.stdout.count(", within 24"), 3)
        self.assertNotIn("no time for", done.stdout)


if __name__ == "__main__":
    unittest.main()
