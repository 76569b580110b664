"""Finding, loading and checking libstatrec; the structs of _abi.py match the headers."""
import ctypes
import os
import pickle
import shutil
import struct
import subprocess
import threading
import time
import unittest
from unittest import mock

import statrec
from statrec import _abi, _file, _library
from support import (PACKAGE, TOP, InDirectory, compiled, needs_compiler, python, wants)

LIBRARY = os.environ["STATREC_LIBRARY"]
OPEN = "import statrec; statrec.open('nosuch.h5')"
CREATE = "import statrec; statrec.Recorder('nosuch.h5', program='tests')"


class Finding(InDirectory):
    def told(self, script=OPEN, **env):
        """Returns the last line of the error when opening a file fails."""
        result = python(script, env=env)
        self.assertNotEqual(result.returncode, 0)
        return result.stderr.splitlines()[-1]

    def test_import_loads_nothing(self):
        result = python("""
            import sys, statrec
            print([name for name in ("numpy", "torch", "pandas", "xarray", "h5py")
                   if name in sys.modules], "libstatrec" in open("/proc/self/maps").read())
        """, env={"STATREC_LIBRARY": "/nowhere/libstatrec.so"})
        self.assertEqual((result.stdout, result.stderr), ("[] False\n", ""))

    def test_parts_that_need_torch_are_loaded_when_used(self):
        result = python("""
            import statrec
            try:
                print(statrec.models.__name__, statrec.nn.__name__)
            except ImportError as error:
                print("statrec.models statrec.nn", "torch" in str(error))
            print(hasattr(statrec, "model"))
        """)
        self.assertIn("statrec.models statrec.nn", result.stdout)
        self.assertIn("False", result.stdout.splitlines()[-1])

    def test_environment_is_first(self):
        self.assertIn("nosuch.h5: No such file or directory", self.told())

    def test_environment_names_nothing(self):
        line = self.told(STATREC_LIBRARY="/nowhere/libstatrec.so")
        self.assertIn("$STATREC_LIBRARY = /nowhere/libstatrec.so: no such file", line)
        self.assertIn("set STATREC_LIBRARY", line)

    def test_no_library_tells_every_place(self):
        line = self.told(CREATE, STATREC_LIBRARY="", LD_LIBRARY_PATH="", PYTHONPATH=self.copy())
        self.assertIn("$STATREC_LIBRARY: not set", line)
        self.assertIn(os.path.join(self.directory, "copy", "statrec", "libstatrec.so.1"), line)
        self.assertIn("libstatrec.so.1 by the loader", line)

    def test_no_library(self):
        with open("text.so", "w", encoding="utf-8") as file:
            file.write("this is no library\n")
        line = self.told(STATREC_LIBRARY=os.path.abspath("text.so"))
        self.assertIn("text.so", line)
        self.assertIn("libstatrec does not load", line)

    def copy(self):
        """Returns the path of a copy of the package without a library beside it."""
        shutil.copytree(os.path.join(PACKAGE, "statrec"), "copy/statrec")
        return os.path.abspath("copy")

    def test_beside_the_module(self):
        path = self.copy()
        shutil.copy(LIBRARY, "copy/statrec/libstatrec.so.1")
        line = self.told(STATREC_LIBRARY="", PYTHONPATH=path)
        self.assertIn("nosuch.h5: No such file or directory", line)

    def test_by_the_loader(self):
        os.mkdir("lib")
        os.symlink(os.path.abspath(LIBRARY), "lib/libstatrec.so.1")
        line = self.told(STATREC_LIBRARY="", PYTHONPATH=self.copy(),
                         LD_LIBRARY_PATH=os.path.abspath("lib"))
        self.assertIn("nosuch.h5: No such file or directory", line)

    def test_path_of_the_library(self):
        self.assertEqual(_library.path_of(_library.library()), os.path.realpath(LIBRARY))


@needs_compiler
class OtherLibraries(InDirectory):
    def told(self, source):
        compiled(source, "other.so", "-shared", "-fPIC")
        result = python(OPEN, env={"STATREC_LIBRARY": os.path.abspath("other.so")})
        return result.stderr.splitlines()[-1]

    def test_another_abi(self):
        line = self.told("int sr_abi_version(void) { return 2; }")
        self.assertIn("other.so: its ABI is 2, this package is written for 1", line)

    def test_no_abi(self):
        self.assertIn("no function sr_abi_version", self.told("int sr_create(void) { return 0; }"))

    def test_missing_functions(self):
        line = self.told("int sr_abi_version(void) { return 1; } void sr_create(void) {}")
        self.assertRegex(line, "it lacks .*sr_close.* which this package calls")
        self.assertNotIn("sr_create", line)


class Errors(unittest.TestCase):
    def test_one_line_and_what_can_be_done(self):
        error = statrec.Error("no 'x'", "usage", "did you mean 'y'?")
        self.assertEqual(str(error), "no 'x' (did you mean 'y'?)")
        self.assertEqual((error.text, error.status, error.hint),
                         ("no 'x'", "usage", "did you mean 'y'?"))

    def test_pickled(self):
        error = pickle.loads(pickle.dumps(statrec.Error("a", "io", "b")))
        self.assertEqual((error.text, error.status, error.hint), ("a", "io", "b"))

    def test_missing_name_is_a_key_error(self):
        error = _library.NameMissing("no 'x'")
        self.assertIsInstance(error, KeyError)
        self.assertEqual(str(error), "no 'x'")

    def test_of_the_library(self):
        failure = _abi.Failure(status=5, text=b"run.h5: exists", hint=b"--force")
        error = _library.error_of(failure)
        self.assertEqual((error.text, error.status, error.hint),
                         ("run.h5: exists", "exists", "force=True"))


class ShorterStructs(unittest.TestCase):
    """A library older than a field returns structs that end without it."""

    def test_what_is_not_there_is_zero(self):
        full = _abi.RunMetric(name=b"f1", better=1)
        full.size = _abi.RunMetric.better.offset
        copy = _library.copy_of(ctypes.pointer(full), _abi.RunMetric)
        self.assertEqual((copy.name, copy.better), (b"f1", 0))

    def test_nothing(self):
        self.assertIsNone(_library.copy_of(ctypes.POINTER(_abi.RunMetric)(), _abi.RunMetric))


# The class of each struct, and its fields with another name in C.
STRUCTS = {"sr_failure": _abi.Failure, "sr_options": _abi.Options, "sr_site": _abi.Site,
           "sr_step": _abi.Step, "sr_forward": _abi.Forward, "sr_backward": _abi.Backward,
           "sr_pass": _abi.Pass, "sr_tensor": _abi.Tensor, "sr_pass_sums": _abi.PassSums,
           "sr_device_place": _abi.DevicePlace,
           "sr_finish": _abi.Finish, "sr_run_site": _abi.RunSite, "sr_run_info": _abi.RunInfo,
           "sr_run_metric": _abi.RunMetric, "sr_run_declared": _abi.RunDeclared,
           "sr_run_embedding": _abi.RunEmbedding, "sr_recovery": _abi.Recovery}

NUMBERS = {"SR_ABI_VERSION": _abi.ABI, "SR_BETTER_LESS": _abi.BETTER["less"],
           "SR_BETTER_NEITHER": _abi.BETTER[""], "SR_BETTER_MORE": _abi.BETTER["more"],
           "SR_PER_SITE": _abi.SCOPES.index("site"), "SR_PER_STEP": _abi.SCOPES.index("step"),
           "SR_REPEAT_LAST": _abi.REPEATS.index("last"),
           "SR_REPEAT_MERGE": _abi.REPEATS.index("merge"),
           "SR_SPECTRUM_input": _abi.SPECTRA.index("input"),
           "SR_SPECTRUM_gradient": _abi.SPECTRA.index("gradient"),
           "SR_SPECTRUM_COUNT": len(_abi.SPECTRA),
           "SR_FINAL_tid_mean": _abi.FINALS.index("tid_mean"),
           "SR_FINAL_tid_var": _abi.FINALS.index("tid_var")}

HEADERS = "#include <stddef.h>\n#include <stdio.h>\n#include <statrec/record.h>\n" \
          "#include <statrec/runfile.h>\n"


@needs_compiler
class Headers(InDirectory):
    def output(self, lines):
        compiled(f"{HEADERS}int main(void) {{ sr_options preset = SR_OPTIONS_DEFAULT; "
                 f"(void)preset; {' '.join(lines)} return 0; }}", "layout",
                 f"-I{os.path.join(TOP, 'include')}")
        return subprocess.run("./layout", capture_output=True, text=True, check=True).stdout

    def test_structs(self):
        asked, expected = [], []
        for name, kind in STRUCTS.items():
            asked.append(f'printf("{name} %zu\\n", sizeof({name}));')
            expected.append(f"{name} {ctypes.sizeof(kind)}")
            for field, of in kind._fields_:
                asked.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), '
                             f'sizeof((({name} *)0)->{field}));')
                expected.append(f"{name}.{field} {getattr(kind, field).offset} "
                                f"{ctypes.sizeof(of)}")
        self.assertEqual(self.output(asked).splitlines(), expected)

    def test_packed(self):
        """Structs that are given as bytes."""
        for kind, letters, values in ((_abi.Tensor, _abi.TENSOR, [64, 7, 1, 2, 3, 4, 5, 6]),
                                      (_abi.Pass, _abi.PASS, [56, 1, True, False, 2, 3, 4, 5, 6])):
            self.assertEqual(struct.calcsize("@" + 2 * letters), 2 * ctypes.sizeof(kind))
            one = kind.from_buffer_copy(struct.pack("@" + letters, *values))
            self.assertEqual([getattr(one, name) for name, _ in kind._fields_], values)
        values = [72, *range(1, 8), 0.5]
        one = _abi.DevicePlace.from_buffer_copy(struct.pack("@" + _abi.DEVICE_PLACE, *values))
        self.assertEqual([getattr(one, name) for name, _ in one._fields_], values)
        self.assertEqual(struct.calcsize("@" + _abi.PASS_SUMS), ctypes.sizeof(_abi.PassSums))
        values = [128, *range(1, 13), 13, 14, 0.5, True]
        one = _abi.PassSums.from_buffer_copy(struct.pack("@" + _abi.PASS_SUMS, *values))
        self.assertEqual((one.g, one.x, list(one.vector), one.element, one.vector_element, one.outer,
                          one.channels, one.inner, one.to, one.square, one.eps, one.root),
                         (1, 2, [3, 4, 5, 6, 7], 8, 9, 10, 11, 12, 13, 14, 0.5, True))

    def test_enumerations(self):
        asked = [f'printf("{name} %d\\n", (int){name});' for name in NUMBERS]
        expected = [f"{name} {number}" for name, number in NUMBERS.items()]
        self.assertEqual(self.output(asked).splitlines(), expected)

    def test_options_default(self):
        names = [name for name, _ in _abi.Options._fields_]
        texts = {"program", "version", "command", "config", "host", "git", "model", "data", "task",
                 "loss_reduction", "parent", "ranks"}
        asked = [f'printf("{n} %s\\n", preset.{n} ? preset.{n} : "None");' if n in texts else
                 f'printf("{n} %.6g\\n", (double)preset.{n});' for n in names]
        ours = {**dict.fromkeys(names, 0), **dict.fromkeys(texts), **_abi.OPTIONS_DEFAULT}
        ours["size"] = ctypes.sizeof(_abi.Options)
        expected = [f"{n} {ours[n]}" if n in texts else f"{n} {float(ours[n]):.6g}" for n in names]
        self.assertEqual(self.output(asked).splitlines(), expected)


class Symbols(unittest.TestCase):
    def test_nothing_of_it_is_global(self):
        result = python("""
            import ctypes, statrec
            statrec.check("nosuch.h5")
            everybody = ctypes.CDLL(None)
            print(hasattr(everybody, "sr_abi_version"), hasattr(everybody, "H5Fopen"))
        """)
        self.assertEqual((result.stdout, result.stderr), ("False False\n", ""))


TOGETHER = """
    import sys
    if sys.argv[1] == "h5py": import h5py
    import statrec
    from support import record
    with statrec.open(record("run.h5")) as run:
        told = run.steps["loss"]
    import h5py, numpy
    with h5py.File("other.h5", "w") as f:
        f.create_dataset("x", data=numpy.arange(10.0), chunks=(5,), compression="gzip")
    with h5py.File("other.h5") as f: total = float(f["x"][:].sum())
    with h5py.File("run.h5") as f: loss = f["steps/loss"][:]
    recorder = statrec.Recorder("second.h5", program="tests")
    site = recorder.add_site("a", width=3, eps=0.0)
    run = statrec.open("run.h5")
    with h5py.File("meanwhile.h5", "w") as f:
        recorder.begin_step(1)
        f["y"] = numpy.ones(3)
        recorder.put_vector(site, "mu_B", f["y"][:])
        recorder.end_step(update=1, tokens=1)
    recorder.close()
    print(total, bool((told == loss).all()),
          statrec.open("second.h5").vector("mu_B", "a").tolist(), statrec.check("second.h5"))
"""


class BesideH5py(InDirectory):
    @wants("h5py", "numpy")
    def test_both_orders(self):
        for first in ("h5py", "statrec"):
            with self.subTest(first=first):
                result = python(TOGETHER, first)
                self.assertEqual(result.stderr, "")
                self.assertEqual(result.stdout, "45.0 True [[1.0, 1.0, 1.0]] []\n")
                for name in os.listdir():
                    os.unlink(name)


class Lock(unittest.TestCase):
    def test_calls_wait_for_each_other(self):
        """No two threads are in the library at a time: HDF5 may be built without locks."""
        inside, most = [], []

        def check(*_):
            inside.append(None)
            time.sleep(0.02)
            most.append(len(inside))
            inside.pop()
            return 0
        counted = mock.Mock(sr_run_check_all=check)
        with mock.patch.object(_file, "library", lambda: counted):
            threads = [threading.Thread(target=statrec.check, args=("x.h5",)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(most, [1, 1, 1, 1])

    @wants("h5py")
    def test_that_of_h5py(self):
        result = python("""
            from statrec import _library
            before = _library.locked()
            import h5py
            print(before is _library._lock, _library.locked() is h5py._objects.phil)
        """)
        self.assertEqual((result.stdout, result.stderr), ("True True\n", ""))


class Watch(InDirectory):
    def test_stays_the_function(self):
        """After the submodule of the same name was imported, in every way."""
        shutil.copytree(os.path.join(PACKAGE, "statrec"), "statrec")
        with open("statrec/watch.py", "w", encoding="utf-8") as file:
            file.write("def watch(*arguments, alpha, **options): return arguments, alpha\n")
        result = python("""
            import statrec, sys
            assert "statrec.watch" not in sys.modules
            print(statrec.watch(1, 2, alpha=3), statrec.watch(4, 5))
            import statrec.watch
            from statrec.watch import watch
            print(statrec.watch(6, 7), watch(8, alpha=9))
        """, env={"PYTHONPATH": self.directory})
        self.assertEqual((result.stdout, result.stderr),
                         ("((1, 2), 3) ((4, 5), 0.9)\n((6, 7), 0.9) ((8,), 9)\n", ""))


class Version(unittest.TestCase):
    def test_that_of_the_makefile(self):
        with open(os.path.join(TOP, "Makefile"), encoding="utf-8") as makefile:
            line = next(line for line in makefile if line.startswith("VERSION"))
        self.assertEqual(statrec.version, line.split()[-1])

    def test_that_of_the_citation(self):
        with open(os.path.join(TOP, "CITATION.cff"), encoding="utf-8") as citation:
            self.assertIn(f"\nversion: {statrec.version}\n", citation.read())
        self.assertEqual(_library.library().sr_version().decode(), statrec.version)
