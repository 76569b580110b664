"""Recorder in a host that fails, forks, forgets it, fills the disk, or has several."""
import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from unittest import mock

import statrec
from support import WIDTH, InDirectory, begin, needs_fork, put, python, record, rows


class WithBlocks(InDirectory):
    def ended(self, exception):
        with self.assertRaises(type(exception)) as caught:
            with begin("run.h5")[0] as recorder:
                put(recorder, 1)
                raise exception
        self.assertIs(caught.exception, exception)
        info = statrec.open("run.h5").info
        self.assertEqual(info["steps"], 1)
        return info["status"], info["reason"]

    def test_complete(self):
        with begin("run.h5")[0] as recorder:
            put(recorder, 1)
        self.assertEqual(statrec.open("run.h5").info["status"], "complete")

    def test_exception(self):
        self.assertEqual(self.ended(ValueError("shape\nof x")),
                         ("failed", "ValueError: shape of x"))

    def test_interrupt(self):
        self.assertEqual(self.ended(KeyboardInterrupt())[0], "interrupted")

    def test_exit(self):
        self.assertEqual(self.ended(SystemExit(3)), ("interrupted", "SystemExit: 3"))

    def test_generator_closed(self):
        """A training loop that is a generator, which its caller ends."""
        self.assertEqual(self.ended(GeneratorExit())[0], "interrupted")

    def test_exception_inside_a_step(self):
        with self.assertRaises(ValueError):
            with begin("run.h5")[0] as recorder:
                put(recorder, 1)
                recorder.begin_step(2)
                raise ValueError
        self.assertEqual(statrec.check("run.h5"), ["run.h5: failed, 1 steps readable: ValueError:"])

    def test_close_that_fails_too(self):
        with warnings.catch_warnings(record=True) as told, self.assertRaises(ValueError):
            warnings.simplefilter("always")
            with begin("run.h5", quiet=False)[0] as recorder:
                put(recorder, 1)
                try:
                    recorder.begin_step(1)
                except statrec.Error:
                    raise ValueError("the host's own") from None
        self.assertEqual(len(told), 1)
        self.assertIn("run.h5 could not be closed", str(told[0].message))

    def test_close_that_fails_alone(self):
        with self.assertRaisesRegex(statrec.Error, "step 1 after step 1"):
            with begin("run.h5")[0] as recorder:
                put(recorder, 1)
                try:
                    recorder.begin_step(1)
                except statrec.Error:
                    pass


LEFT = """
    import statrec, support, sys, os
    recorder, _ = support.begin("run.h5", flush_seconds=1e9, flush_steps=10)
    for step in range(1, 16): support.put(recorder, step)
    {}
"""


class Unclosed(InDirectory):
    def left(self, ending):
        """Runs 15 steps, then `ending`. Returns the output on stderr and the readable steps."""
        result = python(LEFT.format(ending))
        self.assertEqual(os.listdir(), ["run.h5.part"])
        run = statrec.open("run.h5")
        self.assertEqual(run.info["status"], "running")
        self.assertEqual(list(run.steps["step"]), list(range(1, run.info["steps"] + 1)))
        return result, run.info["steps"]

    def test_interpreter_ends(self):
        result, steps = self.left("")
        self.assertEqual((result.returncode, steps), (0, 15))
        self.assertEqual(result.stderr.count("was not closed"), 1)
        self.assertIn("run.h5 was not closed: its rows are in run.h5.part", result.stderr)

    def test_exception_ends_it(self):
        result, steps = self.left("raise ValueError('the host')")
        self.assertEqual((result.returncode, steps), (1, 15))
        self.assertIn("ValueError: the host", result.stderr)
        self.assertEqual(result.stderr.count("was not closed"), 1)

    def test_forgotten(self):
        result, steps = self.left("del recorder; print('goes on')")
        self.assertEqual((result.stdout, steps), ("goes on\n", 15))
        self.assertEqual(result.stderr.count("was not closed"), 1)

    def test_killed(self):
        result, steps = self.left("os._exit(9)")
        self.assertEqual((result.returncode, result.stderr, steps), (9, "", 10))

    def test_abandoned(self):
        result, steps = self.left("recorder.abandon()")
        self.assertEqual((result.returncode, result.stderr, steps), (0, "", 10))

    def test_no_step_leaves_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            recorder, _ = begin("run.h5")
            del recorder
            gc.collect()
        self.assertEqual(os.listdir(), [])

    def test_closed_recorder_is_forgotten_silently(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            recorder, _ = begin("run.h5")
            put(recorder, 1)
            recorder.close()
            del recorder
            gc.collect()


@needs_fork
class Forked(InDirectory):
    def child(self, function):
        """Exit status of a child that calls the function and ends as an interpreter does."""
        pid = os.fork()
        if pid == 0:
            status = 3
            try:
                function()
                status = 0
            finally:
                os._exit(status)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return status
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.fail("the child hangs")

    def test_every_method_does_nothing(self):
        recorder, site = begin("run.h5", flush_steps=1)
        put(recorder, 1)

        def use():
            assert recorder.add_site("x", width=1, eps=0) == -1
            assert recorder.own_seconds == 0.0 and not recorder.wants_vectors()
            put(recorder, 2, shift=50.0)
            recorder.put_scalar(site, "no such name", 1)
            recorder.evaluate(2, f1=1)
            recorder.flush()
            assert recorder.failure is None
            recorder.close()
            recorder.abandon()
        self.assertEqual(self.child(use), 0)
        put(recorder, 2)
        recorder.close()
        run = statrec.open("run.h5")
        self.assertEqual(list(run.steps["step"]), [1, 2])
        self.assertEqual([row[0] for row in run.vector("mu_B", 0)], [1, 2])
        self.assertEqual(statrec.check("run.h5"), [])

    def test_forgotten_in_the_child(self):
        recorder, _ = begin("run.h5", flush_steps=1)
        put(recorder, 1)
        holder = [recorder]
        del recorder

        def forget():
            holder.clear()
            gc.collect()
        self.assertEqual(self.child(forget), 0)
        put(holder[0], 2)
        holder[0].close()
        self.assertEqual(statrec.check("run.h5"), [])

    def test_child_that_ends_as_an_interpreter(self):
        result = python("""
            import os, sys, support
            recorder, _ = support.begin("run.h5", flush_steps=1)
            support.put(recorder, 1)
            pid = os.fork()
            if pid == 0:
                support.put(recorder, 2)
                sys.exit(0)
            print(os.waitpid(pid, 0)[1])
            support.put(recorder, 2)
            support.put(recorder, 3)
            recorder.close()
        """)
        self.assertEqual((result.stdout, result.stderr), ("0\n", ""))
        self.assertEqual(statrec.check("run.h5"), [])
        self.assertEqual(list(statrec.open("run.h5").steps["step"]), [1, 2, 3])

    def test_lock_that_another_thread_held(self):
        result = python("""
            import os, threading, warnings, support
            from statrec import _library
            warnings.simplefilter("ignore", DeprecationWarning)  # of fork with threads
            support.record("run.h5", 1)
            held, release = threading.Event(), threading.Event()
            def hold():
                with _library.locked():
                    held.set()
                    release.wait(60)
            thread = threading.Thread(target=hold)
            thread.start()
            held.wait(60)
            pid = os.fork()
            if pid == 0:
                support.record("child.h5", 1)
                os._exit(0)
            print(os.waitpid(pid, 0)[1])
            release.set()
        """, timeout=60)
        self.assertEqual((result.stdout, result.stderr), ("0\n", ""))
        self.assertEqual(statrec.check("child.h5"), [])

    def test_file_of_the_parent(self):
        run = statrec.open(record("run.h5", 3))

        def read():
            assert len(run.steps["step"]) == 3
            run.close()
        self.assertEqual(self.child(read), 0)
        self.assertEqual(len(run.steps["step"]), 3)


class Several(InDirectory):
    def test_two_recorders(self):
        first, _ = begin("a.h5")
        second, _ = begin("b.h5")
        for step in range(1, 4):
            put(first, step)
            put(second, 2 * step, shift=10.0)
        first.close()
        put(second, 9)
        second.close()
        self.assertEqual(list(statrec.open("a.h5").steps["step"]), [1, 2, 3])
        self.assertEqual(list(statrec.open("b.h5").steps["step"]), [2, 4, 6, 9])
        self.assertEqual([row[0] for row in statrec.open("b.h5").vector("mu_B", 0)],
                         [12, 14, 16, 9])

    def test_two_sites(self):
        recorder, _ = begin("run.h5")
        other = recorder.add_site("norm2", width=WIDTH, eps=0.0, depth=1)
        put(recorder, 1, sites=(0, other))
        recorder.close()
        run = statrec.open("run.h5")
        self.assertEqual(rows(run["mu_B"][:]), [[1, 2, 3, 1, 2, 3]])

    def test_same_path_twice(self):
        first, _ = begin("run.h5")
        put(first, 1)
        self.fails("exists", "run.h5", statrec.Recorder, "run.h5")
        first.close()

    def test_threads(self):
        record("other.h5")
        failures = []

        def work(name):
            try:
                recorder, _ = begin(name, flush_steps=1)
                for step in range(1, 60):
                    put(recorder, step)
                    if step % 10 == 0:
                        statrec.open("other.h5").scalar("rows", 0)
                recorder.close()
            except BaseException as error:  # a thread would only print it
                failures.append(error)
        threads = [threading.Thread(target=work, args=(f"{i}.h5",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        for i in range(4):
            self.assertEqual(statrec.check(f"{i}.h5"), [])
            self.assertEqual(statrec.open(f"{i}.h5").info["steps"], 59)


FULL = """
    import resource, signal, support, statrec
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    recorder, _ = support.begin("run.h5", flush_steps=1, quiet={quiet}, vectors_every=1)
    for step in range(1, 5001):
        support.put(recorder, step)
    print(step, recorder.failure)
    recorder.close()
    print("goes on")
"""


class Disk(InDirectory):
    def test_full_quiet(self):
        result = python(FULL.format(quiet=True))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        first, second = result.stdout.splitlines()
        self.assertRegex(first, "^5000 run.h5.*File too large")
        self.assertEqual(second, "goes on")
        self.assertEqual(os.listdir(), ["run.h5.part"])
        self.assertGreater(statrec.open("run.h5").info["steps"], 10)

    def test_full(self):
        result = python(FULL.format(quiet=False))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "statrec._library.Error: run.h5.*File too large")

    def test_deleted_directory(self):
        os.mkdir("runs")
        recorder, _ = begin("runs/run.h5", flush_steps=1)
        put(recorder, 1)
        shutil.rmtree("runs")
        self.fails("io", "runs/run.h5.part: removed or replaced while recording", put, recorder, 2)
        self.fails("io", "runs/run.h5", recorder.close)

    def test_file_that_appeared(self):
        recorder, _ = begin("run.h5")
        put(recorder, 1)
        with open("run.h5", "w", encoding="utf-8") as file:
            file.write("another's\n")
        self.fails("exists", "run.h5", recorder.close)
        with open("run.h5", encoding="utf-8") as file:
            self.assertEqual(file.read(), "another's\n")


class Interrupted(InDirectory):
    def test_inside_an_evaluation(self):
        recorder, _ = begin("run.h5")
        recorder.add_metric("f1")
        put(recorder, 1)
        with mock.patch.object(recorder, "_done", side_effect=[None, KeyboardInterrupt]):
            self.assertRaises(KeyboardInterrupt, recorder.evaluate, 1, f1=1)
        recorder.evaluate(1, f1=2)
        recorder.close()
        self.assertEqual(len(statrec.open("run.h5").evals["f1"]), 2)

    def test_signal(self):
        script = ("import support, time\nwith support.begin('run.h5')[0] as r:\n"
                  "    support.put(r, 1); print('ready', flush=True); time.sleep(60)\n")
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True,
                                   env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGINT)
        process.wait(60)
        self.assertEqual(statrec.open("run.h5").info["status"], "interrupted")
