"""Builds the wheel: make installs programs and libstatrec into statrec/_tree of the package.

STATREC_PURE=1: a wheel for every machine without them. STATREC_MAKE: arguments of make in place of
ARCH=native.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

TOP = os.path.dirname(os.path.abspath(__file__))
PURE = os.environ.get("STATREC_PURE") == "1"
PREFIX = "usr/local"  # of the Makefile; another one would compile everything anew


def version():
    """VERSION of the Makefile."""
    with open(os.path.join(TOP, "Makefile"), encoding="utf-8") as makefile:
        return re.search(r"^VERSION\s*:=\s*(\S+)", makefile.read(), re.MULTILINE).group(1)


def programs():
    """Names of the programs."""
    analyses = glob.glob(os.path.join(TOP, "analyses", "*.c"))
    return ["statrec", "statplot", *sorted(os.path.basename(name)[:-2] for name in analyses)]


def make(*arguments):
    """Runs make with the arguments of STATREC_MAKE and these."""
    chosen = shlex.split(os.environ.get("STATREC_MAKE", "ARCH=native"))
    subprocess.run(["make", "-C", TOP, f"-j{os.cpu_count() or 1}", *chosen, *arguments], check=True,
                   stdout=sys.stderr)


class Build(build_py):
    """Modules of the package, its version, and what make installs."""

    def run(self):
        super().run()
        if self.editable_mode:
            if not PURE:
                make("all")
            return
        package = os.path.join(self.build_lib, "statrec")
        with open(os.path.join(package, "_version.py"), "w", encoding="utf-8") as module:
            module.write(f'"""The version of this package."""\nversion = "{version()}"\n')
        tree = os.path.join(package, "_tree")
        shutil.rmtree(tree, ignore_errors=True)
        if not PURE:
            self.install(tree)

    def install(self, tree):
        """bin, lib and share of a new `make install-programs`, without debugging symbols."""
        staged = os.path.abspath(os.path.join(self.build_lib, os.pardir, "staged"))
        shutil.rmtree(staged, ignore_errors=True)
        make("install-programs", f"DESTDIR={staged}")
        shutil.copytree(os.path.join(staged, PREFIX), tree, ignore=shutil.ignore_patterns(
            "libstatrec.so", "libstatrec.so.1.*"))
        library = os.path.join("lib", "libstatrec.so.1")
        shutil.copyfile(os.path.join(staged, PREFIX, library), os.path.join(tree, library))
        binaries = [name for part in ("bin", "lib")
                    for name in glob.glob(os.path.join(tree, part, "**"), recursive=True)
                    if os.path.isfile(name)]
        subprocess.run(["strip", "--strip-unneeded", *binaries], check=True)


class Wheel(bdist_wheel):
    """One wheel for every Python 3 of a platform, or for every platform."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class Package(Distribution):
    """With the library it belongs where a platform's packages are."""

    def has_ext_modules(self):
        return not PURE


setup(version=version(), distclass=Package,
      cmdclass={"build_py": Build, "bdist_wheel": Wheel},
      options={"build": {"build_base": os.path.join("build", "setuptools")}},
      entry_points={"console_scripts": [] if PURE else
                    [f"{name} = statrec._programs:main" for name in programs()]})
