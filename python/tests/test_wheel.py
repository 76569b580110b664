"""The wheel: what is in it, and that it works where nothing else is."""
import base64
import csv
import hashlib
import importlib.util
import os
import subprocess
import sys
import unittest
import zipfile

import statrec
from support import TOP, InDirectory

BACKEND = os.path.join(TOP, "python", "wheel_backend.py")


def backend():
    """wheel_backend.py as a module."""
    spec = importlib.util.spec_from_file_location("wheel_backend", BACKEND)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@unittest.skipUnless(os.path.exists(BACKEND), "not a checkout")
class Wheel(InDirectory):
    def made(self):
        """The path of a new wheel."""
        result = subprocess.run([sys.executable, BACKEND, "wheels"], capture_output=True,
                                text=True, check=True)
        return result.stdout.strip()

    def test_members(self):
        path = self.made()
        self.assertEqual(os.path.basename(path), f"statrec-{statrec.version}-py3-none-any.whl")
        about = f"statrec-{statrec.version}.dist-info"
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            sources = {f"statrec/{name}" for name in os.listdir(os.path.dirname(statrec.__file__))
                       if name.endswith(".py")}
            self.assertLessEqual(sources, set(names))
            self.assertIn(f"Version: {statrec.version}\n",
                          wheel.read(f"{about}/METADATA").decode())
            self.assertIn("Tag: py3-none-any\n", wheel.read(f"{about}/WHEEL").decode())
            self.assertIn("MIT", wheel.read(f"{about}/licenses/LICENSE").decode())
            self.assertFalse([name for name in names if "test" in name or "cache" in name])
            self.check_record(wheel, f"{about}/RECORD")

    def check_record(self, wheel, record):
        listed = list(csv.reader(wheel.read(record).decode().splitlines()))
        self.assertEqual([row[0] for row in listed], wheel.namelist())
        for name, digest, size in listed[:-1]:
            content = wheel.read(name)
            wanted = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
            self.assertEqual((digest, size), ("sha256=" + wanted.rstrip("="), str(len(content))))

    def test_same_bytes(self):
        with open(self.made(), "rb") as first:
            content = first.read()
        with open(self.made(), "rb") as second:
            self.assertEqual(second.read(), content)

    def test_unpacked(self):
        with zipfile.ZipFile(self.made()) as wheel:
            wheel.extractall("site")
        script = "import statrec; print(statrec.version, statrec.check('x.h5'), statrec.__file__)"
        result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                                check=True, env={**os.environ, "PYTHONPATH": "site"})
        self.assertEqual(result.stdout, f"{statrec.version} ['x.h5: No such file or directory'] "
                         f"{os.path.abspath('site')}/statrec/__init__.py\n")

    def test_editable(self):
        name = backend().build_editable("wheels")
        with zipfile.ZipFile(os.path.join("wheels", name)) as wheel:
            self.assertEqual(wheel.read("statrec-checkout.pth").decode().strip(),
                             os.path.join(TOP, "python"))
            self.assertNotIn("statrec/__init__.py", wheel.namelist())

    def test_no_version(self):
        module = backend()
        os.makedirs("top")
        with open("top/Makefile", "w", encoding="utf-8") as file:
            file.write("VERSIONS := 1\n")
        module.TOP = os.path.abspath("top")
        with self.assertRaisesRegex(SystemExit, "no line 'VERSION := ' in .*top/Makefile"):
            module.version()

    def test_usage(self):
        result = subprocess.run([sys.executable, BACKEND], capture_output=True, text=True,
                                check=False)
        self.assertEqual((result.returncode, result.stderr),
                         (1, "usage: wheel_backend.py DIRECTORY\n"))
