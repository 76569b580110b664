"""bench/cuda_watch.py without a GPU: every part runs, as small as can be, and prints its table."""
import os
import subprocess
import sys
import unittest

from support import TOP, wants

SCRIPT = os.path.join(TOP, "bench", "cuda_watch.py")


@wants("torch", "triton")
@unittest.skipUnless(os.path.exists(SCRIPT), "no bench directory")
class Dry(unittest.TestCase):
    def test_all_parts(self):
        done = subprocess.run([sys.executable, SCRIPT, "--dry"], capture_output=True, text=True, timeout=300,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        tables = {}
        for row in done.stdout.splitlines():
            if not row.startswith("#"):
                name, *words = row.split("\t")
                tables.setdefault(name, []).append(words)
        self.assertEqual(sorted(tables), ["accuracy", "bits", "nodes", "overhead", "syncs"])
        for name, rows in tables.items():
            self.assertEqual({len(row) for row in rows}, {len(rows[0])}, name)
        self.assertEqual({row[-1] for row in tables["accuracy"][1:]}, {"ok"})
        self.assertGreater(len(tables["accuracy"]), 20)
        self.assertEqual({row[1] for row in tables["bits"][1:]}, {"same"})
        self.assertEqual([row[1] for row in tables["overhead"][1:]],
                         ["bare", "bare2", "everything", "scalars", "every10"])
        self.assertEqual([row[1] for row in tables["syncs"][1:]], ["bare", "everything", "scalars", "every10"])


if __name__ == "__main__":
    unittest.main()
