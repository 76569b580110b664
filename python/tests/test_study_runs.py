"""statrec study with another program than statrec train: the runs that it makes, how many at a time, failed and stopped
runs, and its tables."""
import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest

import statrec
from statrec.study import archive, experiment, rule, running
from support import HERE, InDirectory

PROGRAM = os.path.join(HERE, "study_program.py")
BEGIN = f"#: program = {sys.executable} {PROGRAM} --out RUN.h5\n"


def study(*arguments, **options):
    """A running `statrec study`."""
    return subprocess.Popen([sys.executable, "-m", "statrec.study", *arguments], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **options)


class Runs(InDirectory):
    def conf(self, text, name="grid"):
        with open(f"{name}.conf", "w", encoding="utf-8") as file:
            file.write(BEGIN + text)

    def study(self, *arguments, status=0):
        """Returns its output on both streams."""
        made = study(*arguments)
        printed, said = made.communicate(timeout=120)
        self.assertEqual(made.returncode, status, printed + said)
        return printed, said

    def log(self, name):
        with open(f"study/{name}.log", encoding="utf-8") as file:
            return file.read()

    def times(self, name):
        """Number of times that its program started."""
        return self.log(name).count("begun: ")

    def wait_for(self, path):
        end = time.monotonic() + 20
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), end, f"no {path}")
            time.sleep(0.02)

    def test_options_reach_the_program(self):
        self.conf("fail = none\n#: seed = 3 4\n#: norm = ln far:bn\n#: noisy = yes off:no\n")
        printed, _ = self.study("plan", "grid.conf")
        self.assertEqual(printed, "grid: 0 of 8 runs are done\nin all 8 runs\n")
        self.assertFalse(os.path.exists("study"))
        self.study("run", "grid.conf", "--jobs", "2")
        self.assertIn("begun: --out study/grid-4-far-off.h5 --fail none --seed 4 --norm bn --no-noisy\n", self.log("grid-4-far-off"))
        self.assertIn(" --noisy\n", self.log("grid-3-ln-yes"))
        self.assertEqual(statrec.open("study/grid-4-far-off.h5").info["seed"], 4)
        printed, _ = self.study("run", "grid.conf")
        self.assertEqual(printed, "grid: 8 of 8 runs are done\nin all 0 runs, about 0.0 h of one core\n")
        self.assertEqual(self.times("grid-3-ln-yes"), 1)

    def test_options_in_the_words(self):
        found = types.SimpleNamespace(program=["p", "x={norm}", "{seed}{norm}", "RUN.h5"], resume=[], common={"a": "1"})
        words = running.command(types.SimpleNamespace(out="out"), running.Waiting(found, "n", {"seed": "2", "norm": "bn", "lr": "0.1"}, None))
        self.assertEqual(words, ["p", "x=bn", "2bn", "out/n.h5", "--a", "1", "--lr", "0.1"])

    def test_threads_of_runs_at_a_time(self):
        args = types.SimpleNamespace(bin="bin", out="out", data="", jobs=2)
        each = ["--threads", str(max(1, (os.cpu_count() or 1) // 2))]
        for text, wanted in (("epochs = 1\n", each), ("threads = 1\n", [])):
            words = running.command(args, running.Waiting(experiment.Experiment("grid.conf", text), "grid", {}, None))
            self.assertEqual(words[words.index("out/grid.h5") + 1:], wanted)
        args.jobs = 1
        words = running.command(args, running.Waiting(experiment.Experiment("grid.conf", "epochs = 1\n"), "grid", {}, None))
        self.assertEqual(words[-1], "out/grid.h5")

    def test_jobs(self):
        """Each of six programs waits until three run at once; a fourth never does."""
        self.conf("meet = 3\n#: seed = 1 2 3 4 5 6\n")
        self.study("run", "grid.conf", "--jobs", "3")
        most = [int(re.search(r"at once: (\d+)", self.log(f"grid-{seed}"))[1]) for seed in range(1, 7)]
        self.assertEqual(max(most), 3)
        self.assertGreaterEqual(most.count(3), 3)

    def test_one_at_a_time_unless_told(self):
        self.conf("meet = 1\n#: seed = 1 2 3\n")
        self.study("run", "grid.conf")
        for seed in (1, 2, 3):
            self.assertIn("at once: 1\n", self.log(f"grid-{seed}"))

    def test_runs_that_fail(self):
        """The others are made, and the failed ones again by the next call."""
        self.conf("#: seed = 1\n#: fail = none early nothing late\n")
        printed, said = self.study("run", "grid.conf", status=1)
        self.assertIn("statrec study: grid-1-early: exit status 3, see", said)
        self.assertIn("statrec study: grid-1-nothing: exit status 0, and no grid-1-nothing.h5, see study/grid-1-nothing.log\n", said)
        self.assertIn("statrec study: grid-1-late: exit status 4", said)
        self.assertEqual(said.count("\n"), 3)
        self.assertIn("4/4 grid-1-late", printed)
        self.assertTrue(os.path.exists("study/grid-1-late.failed.h5"))
        printed, _ = self.study("plan", "grid.conf")
        self.assertIn("grid: 1 of 4 runs are done\n", printed)
        members = subprocess.run(["tar", "-tJf", "runs/grid.tar.xz"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(members, "grid.conf\ngrid-1-none.h5\n")
        self.study("run", "grid.conf", status=1)
        self.assertEqual([self.times(f"grid-1-{fail}") for fail in ("none", "early", "nothing", "late")], [1, 2, 2, 2])

    def lingering(self, more=""):
        """A study whose bn is complete, while its program works on; ln is made meanwhile."""
        self.conf(f"{more}linger = there\n#: norm = bn ln\n")
        made = study("run", "grid.conf", "--jobs", "2")
        self.addCleanup(lambda: (made.kill(), self.end_programs()))
        self.wait_for("there")
        self.wait_for("runs/grid.tar.xz")
        self.assertEqual(statrec.open("study/grid-bn.h5").info["status"], "complete")
        self.assertEqual(self.members(), ["grid.conf", "grid-ln.h5"])
        return made

    def end_lingering(self, status):
        with open("there.new", "w", encoding="utf-8") as file:
            file.write(str(status))
        os.rename("there.new", "there.end")

    def test_a_program_that_works_on_behind_its_run_file(self):
        """Neither this study nor another one counts the run before the program ends, and not where it fails then."""
        made = self.lingering()
        self.assertIn("grid: 1 of 2 runs are done\n", self.study("plan", "grid.conf")[0])
        self.assertIn("No pair of runs is done yet, 1 run is done.", self.study("report", "grid.conf")[0])
        self.assertEqual(self.study("run", "grid.conf", status=1)[1], "statrec study: grid-bn: another process makes this run\n")
        self.end_lingering(3)
        self.assertIn("statrec study: grid-bn: exit status 3, see", made.communicate(timeout=60)[1])
        self.assertEqual(self.members(), ["grid.conf", "grid-ln.h5"])
        self.assertTrue(os.path.exists("study/grid-bn.failed.h5"))
        self.end_lingering(0)
        self.study("run", "grid.conf")
        self.assertEqual(self.members(), ["grid.conf", "grid-bn.h5", "grid-ln.h5"])
        self.assertEqual(self.times("grid-bn"), 2)

    def test_a_program_that_is_stopped_behind_its_run_file(self):
        made = self.lingering()
        made.send_signal(signal.SIGINT)
        self.assertEqual(made.communicate(timeout=60)[1], "statrec study: stopped; the same command resumes\n")
        self.assertIn("grid: 1 of 2 runs are done\n", self.study("plan", "grid.conf")[0])
        self.end_lingering(0)
        self.study("run", "grid.conf")
        self.assertEqual(self.times("grid-bn"), 2)
        self.assertEqual(self.members(), ["grid.conf", "grid-bn.h5", "grid-ln.h5"])

    def test_a_program_that_ends_after_its_study(self):
        """Its exit status counts all the same."""
        for status in 3, 0:
            with self.subTest(status):
                subprocess.run(["rm", "-rf", "study", "runs", "there", "there.end"], check=True)
                made = self.lingering()
                made.kill()
                made.communicate()
                self.end_lingering(status)
                end = time.monotonic() + 20
                while "another process" in self.study_once()[1]:
                    self.assertLess(time.monotonic(), end)
                self.assertEqual(self.times("grid-bn"), 2 if status else 1)

    def study_once(self):
        return study("run", "grid.conf").communicate(timeout=60)

    def test_files_that_cannot_be_written(self):
        self.conf("#: seed = 1 2\n")
        os.makedirs("study/grid-1.log")
        _, said = self.study("run", "grid.conf", status=1)
        self.assertEqual(said, "statrec study: grid-1: study/grid-1.log: Is a directory\n")
        self.assertEqual(statrec.open("study/grid-2.h5").info["status"], "complete")

    def test_a_program_that_is_not_there(self):
        with open("grid.conf", "w", encoding="utf-8") as file:
            file.write("#: program = ./nothing RUN.h5\n#: seed = 1\n")
        _, said = self.study("run", "grid.conf", status=1)
        self.assertIn("grid-1: exit status 127", said)
        self.assertIn("./nothing: No such file or directory\n", self.log("grid-1"))

    def stopped(self, number, more=""):
        """A study whose first run was stopped by this signal at step 3."""
        self.conf(f"{more}wait = there\n#: seed = 1 2\n")
        made = study("run", "grid.conf")
        self.wait_for("there")
        made.send_signal(number)
        printed, said = made.communicate(timeout=60)
        self.assertEqual(made.returncode, 128 + number)
        self.assertEqual(said, "statrec study: stopped; the same command resumes\n")
        self.assertFalse(os.path.exists("study/grid-2.log"))
        self.assertEqual(statrec.open("study/grid-1.h5").info["status"], "interrupted")

    def test_resume(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                subprocess.run(["rm", "-rf", "study", "runs", "there"], check=True)
                self.stopped(number, f"#: resume = {sys.executable} {PROGRAM} --out RUN.h5 --resume\n")
                # the resumed run does not wait; the second one waits until its file exists
                self.conf(f"#: resume = {sys.executable} {PROGRAM} --out RUN.h5 --resume\nwait = there\n#: seed = 1\n")
                self.study("run", "grid.conf")
                self.assertIn("begun: --out study/grid-1.h5 --resume --wait there --seed 1\n", self.log("grid-1"))
                self.assertEqual(self.times("grid-1"), 2)
                self.assertEqual(statrec.open("study/grid-1.h5").info["status"], "complete")

    def test_a_failed_run_begins_again(self):
        """It is not resumed: what it failed of would be in its state."""
        resume = f"#: resume = {sys.executable} {PROGRAM} --out RUN.h5 --resume\n"
        self.conf(f"{resume}fail = amid\ncareful = yes\n#: seed = 1\n")
        self.study("run", "grid.conf", status=1)
        self.assertEqual(statrec.open("study/grid-1.h5").info["status"], "failed")
        self.conf(f"{resume}careful = yes\n#: seed = 1\n")
        self.study("run", "grid.conf")
        self.assertNotIn("--resume", self.log("grid-1"))
        self.assertEqual(statrec.open("study/grid-1.h5").info["status"], "complete")

    def test_a_second_signal_kills(self):
        self.conf("deaf = yes\nwait = there\n#: seed = 1\n")
        made = study("run", "grid.conf")
        self.wait_for("there")
        made.send_signal(signal.SIGINT)
        time.sleep(0.5)
        self.assertIsNone(made.poll())
        made.send_signal(signal.SIGINT)
        made.communicate(timeout=30)
        self.assertEqual(made.returncode, 128 + signal.SIGINT)
        self.assertTrue(os.path.exists("study/grid-1.h5.part"))

    def test_without_resume_it_begins_again(self):
        self.stopped(signal.SIGTERM)
        self.conf("careful = yes\n#: seed = 1\n")
        self.study("run", "grid.conf")
        self.assertEqual(self.times("grid-1"), 2)
        self.assertNotIn("--resume", self.log("grid-1"))
        self.assertEqual(statrec.open("study/grid-1.h5").info["status"], "complete")

    def test_a_run_that_another_process_makes(self):
        """Also one whose study was killed: its program continues."""
        self.conf("wait = there\n#: seed = 1\n")
        made = study("run", "grid.conf")
        self.wait_for("there")
        _, said = self.study("run", "grid.conf", status=1)
        self.assertEqual(said, "statrec study: grid-1: another process makes this run\n")
        made.kill()
        made.communicate()
        _, said = self.study("run", "grid.conf", status=1)
        self.assertEqual(said, "statrec study: grid-1: another process makes this run\n")
        self.assertEqual(self.times("grid-1"), 1)
        self.end_programs()

    def end_programs(self):
        """Ends the programs that work in this directory."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/cwd") == self.directory and int(pid) != os.getpid():
                    os.kill(int(pid), signal.SIGTERM)
            except OSError:
                pass

    def test_archives(self):
        self.conf("#: seed = 1 2\n")
        self.study("run", "grid.conf")
        subprocess.run(["rm", "-r", "study"], check=True)
        printed, _ = self.study("plan", "grid.conf")
        self.assertIn("grid: 2 of 2 runs are done\n", printed)
        self.assertEqual(statrec.open("study/grid-2.h5").info["seed"], 2)
        self.conf("end-rate = 0.5\n#: seed = 1 2\n")
        _, said = self.study("plan", "grid.conf", status=2)
        self.assertIn("recorded with other settings", said)

    def test_a_run_of_another_experiment(self):
        """A run of the same name in another folder is not a run of this experiment, neither to report nor to pack."""
        for name, rate in (("a", 0.05), ("b", 0.1)):
            os.mkdir(name)
            self.conf(f"end-rate = {rate}\n#: norm = ln\n", f"{name}/grid")
        self.study("run", "a/grid.conf")
        for action in "plan", "run", "report":
            _, said = self.study(action, "b/grid.conf", status=2)
            self.assertEqual(said, "statrec study: study/grid-ln: this run has end-rate = 0.05, b/grid.conf has end-rate = 0.1: remove "
                             "study/grid-ln.h5 to run anew, or choose another --out\n")
        self.study("run", "b/grid.conf", "--out", "other")
        os.remove("study/grid-ln.h5")
        self.study("run", "b/grid.conf")
        self.assertEqual(self.times("grid-ln"), 1) # unpacked
        self.assertTrue(os.path.exists("b/runs/grid.tar.xz"))

    def test_settings_that_were_changed(self):
        """Done runs whose archive was removed, and stopped runs that would be resumed."""
        self.conf("#: norm = ln\n#: after rows = info RUN.h5\n")
        self.study("run", "grid.conf")
        os.remove("runs/grid.tar.xz")
        self.conf("#: norm = ln\n#: after rows = info RUN.h5 --options\n")
        _, said = self.study("plan", "grid.conf", status=2)
        self.assertEqual(said, "statrec study: study/grid-ln-rows.tsv: made by 'info RUN.h5', grid.conf has 'info RUN.h5 --options': remove it "
                         "to make it anew\n")
        os.remove("study/grid-ln-rows.tsv")
        self.study("run", "grid.conf")
        self.assertEqual(self.times("grid-ln"), 1)
        os.remove("runs/grid.tar.xz")
        self.conf("noisy = yes\n#: norm = ln\n")
        _, said = self.study("run", "grid.conf", status=2)
        self.assertIn("study/grid-ln: this run has no noisy, grid.conf has noisy = yes: remove study/grid-ln.h5", said)
        os.remove("study/grid-ln.settings") # a run of an older version
        self.study("run", "grid.conf")
        self.assertEqual(self.times("grid-ln"), 1)

    def test_settings_of_a_run_that_would_be_resumed(self):
        resume = f"#: resume = {sys.executable} {PROGRAM} --out RUN.h5 --resume\n"
        self.stopped(signal.SIGTERM, resume)
        self.conf(f"{resume}wait = there\nend-rate = 0.1\n#: seed = 1 2\n")
        _, said = self.study("run", "grid.conf", status=2)
        self.assertIn("study/grid-1: this run has no end-rate, grid.conf has end-rate = 0.1: remove study/grid-1.h5", said)

    def test_archived_runs_are_not_lost(self):
        self.conf("#: norm = ln bn\n#: seed = 1 2\n")
        self.study("run", "grid.conf")
        with open("runs/grid.tar.xz", "rb") as file:
            before = file.read()
        for text, gone in (("#: norm = ln rms\n#: seed = 1 2\n", "grid-bn-1, grid-bn-2"),
                           ("#: seed = 1 2\n#: norm = ln bn\n", "grid-ln-1, grid-ln-2, grid-bn-1 and 1 more")):
            self.conf(text)
            _, said = self.study("run", "grid.conf", status=2)
            self.assertEqual(said, f"statrec study: runs/grid.tar.xz: grid.conf has no longer {gone}, which would be lost: put the values back, "
                             "in their order, or move the archive away\n")
            with open("runs/grid.tar.xz", "rb") as file:
                self.assertEqual(file.read(), before)

    def members(self):
        return subprocess.run(["tar", "-tJf", "runs/grid.tar.xz"], capture_output=True, text=True, check=True).stdout.split()

    def test_a_new_line_after(self):
        """It uses the archived runs; none of them runs again or is dropped meanwhile."""
        self.conf("#: seed = 1 2\n")
        self.study("run", "grid.conf")
        subprocess.run(["rm", "-r", "study"], check=True)
        self.conf("#: seed = 1 2\n#: after rows = info RUN.h5\n")
        printed, _ = self.study("run", "grid.conf")
        self.assertIn("grid: 0 of 2 runs are done", printed)
        self.assertNotIn("begun", self.log("grid-1"))
        self.assertEqual(self.members(), ["grid.conf", "grid-1.h5", "grid-1-rows.tsv", "grid-2.h5", "grid-2-rows.tsv"])

    def test_an_archive_of_two_studies(self):
        """One with other files adds its runs, and drops none."""
        self.conf("#: seed = 1 2\n")
        self.study("run", "grid.conf")
        args = types.SimpleNamespace(out="other", bin=os.environ.get("STATREC_BIN", ""))
        os.mkdir("other")
        shutil.copy("study/grid-1.h5", "other")
        archive.pack(args, experiment.Experiment("grid.conf"))
        self.assertEqual(self.members(), ["grid.conf", "grid-1.h5", "grid-2.h5"])

    def test_two_studies_at_once(self):
        """Neither fails on the other's archive, nor makes a run that the other has made."""
        self.conf("#: seed = 1 2 3 4\n")
        both = [study("run", "grid.conf") for _ in range(2)]
        for each in both:
            _, said = each.communicate(timeout=120)
            for line in said.splitlines():
                self.assertRegex(line, "grid-.: another process makes this run")
        self.study("run", "grid.conf")
        self.assertEqual([self.times(f"grid-{seed}") for seed in (1, 2, 3, 4)], [1] * 4)
        self.assertEqual(self.members(), ["grid.conf", *(f"grid-{seed}.h5" for seed in (1, 2, 3, 4))])
        self.assertEqual([name for name in os.listdir("runs") if name.endswith(".new")], [])

    def test_files_that_another_process_writes(self):
        """Its temporary files are others, and it packs alone."""
        self.conf("#: seed = 1\n")
        os.makedirs("runs/grid.tar.xz.new")
        os.makedirs("study/grid-1.settings.new")
        with archive.locked("runs"):
            made = study("run", "grid.conf")
            self.wait_for("study/grid-1.h5")
            time.sleep(1)
            self.assertFalse(os.path.exists("runs/grid.tar.xz"))
        _, said = made.communicate(timeout=60)
        self.assertEqual((made.returncode, said), (0, ""))
        self.assertEqual(self.members(), ["grid.conf", "grid-1.h5"])

    def test_report(self):
        """Pairs have the same seed: losses differ far more between seeds than between norms."""
        self.conf("#: norm = ln bn\n#: seed = 1 2 3\n")
        printed, _ = self.study("report", "grid.conf")
        self.assertEqual(printed, "# grid\n\nNo run is done yet.\n\n")
        self.study("run", "grid.conf", "--jobs", "2")
        printed, _ = self.study("report", "grid.conf")
        self.assertIn("| bn | 3 of 3 | +0.100 ± 0.000 | +0.000 ± 0.000 | ended at 0.05 | difference seen: higher |\n", printed)
        subprocess.run(["rm", "study/grid-bn-3.h5", "study/grid-ln-1.h5"], check=True)
        os.rename("runs", "kept")
        printed, _ = self.study("report", "grid.conf")
        self.assertIn("| bn | 1 of 3 | +0.100 | – | ended at 0.05 | runs missing |\n", printed)
        with open("page.md", "w", encoding="utf-8") as file:
            file.write("<!-- study: grid rows=norm columns=seed value=valid_loss digits=4 -->\n<!-- study: end -->\n")
        self.study("report", "grid.conf", "page.md")
        with open("page.md", encoding="utf-8") as file:
            self.assertIn("| bn | 3.1101 | 3.1402 | – |\n", file.read())

    def test_report_of_a_loss_that_is_no_number(self):
        self.conf("lose = yes\n#: norm = ln bn\n#: seed = 1 2\n")
        self.study("run", "grid.conf", "--jobs", "2")
        with open("page.md", "w", encoding="utf-8") as file:
            file.write("<!-- study: grid rows=norm value=best_valid_loss -->\n<!-- study: end -->\n")
        self.study("report", "grid.conf", "page.md")
        with open("page.md", encoding="utf-8") as file:
            self.assertIn("| bn | 1 of 2 diverged |\n", file.read())

    def test_split_of_a_run_without_statistics_over_the_batch(self):
        """Its validation by batches is its validation."""
        self.conf("parts = yes\n#: norm = ln bn\n#: seed = 1 2\n#: report = split=NAME of=norm against=ln digits=1\n")
        self.study("run", "grid.conf", "--jobs", "2")
        printed, _ = self.study("report", "grid.conf")
        self.assertIn("| bn | 2 of 2 | +0.1 ± 0.0 | +0.0 ± 0.0 | -0.4 ± 0.0 | +0.5 ± 0.0 | difference seen: higher |\n", printed)

    def test_report_of_what_is_not_at_its_end(self):
        self.conf("end-rate = 0.5\n#: norm = ln bn\n#: seed = 1 2\n"
                  "#: report = verdict=NAME of=norm against=ln value=valid_loss claim=lower digits=1\n")
        self.study("run", "grid.conf", "--jobs", "2")
        printed, _ = self.study("report", "grid.conf")
        self.assertIn("| bn | 2 of 2 | +0.1 ± 0.0 | +0.0 ± 0.0 | not ended at 0.5 | too short to tell (learning rate not at its end), "
                      "higher so far |\n", printed)

    def test_names_that_no_table_could_have(self):
        for name in "my grid", "grid,v2", "it's":
            self.conf("#: seed = 1\n", name)
            self.assertIn("the name of an experiment has letters", self.study("plan", f"{name}.conf", status=2)[1])

    def test_a_reader_that_stops_early(self):
        self.conf("#: norm = ln bn\n#: seed = 1\n" + "#: report = verdict=NAME of=norm against=ln value=valid_loss\n" * 4000)
        made = study("report", "grid.conf")
        made.stdout.read(1)
        made.stdout.close()
        self.assertEqual(made.stderr.read(), "")
        made.stderr.close()
        self.assertEqual(made.wait(timeout=60), 1)

    def test_mistakes(self):
        self.conf("#: seed = 1\n")
        for text, said in (("#: program = train\n", "grid.conf:2: program: RUN.h5"), ("#: minutes = nan\n", "grid.conf:2: minutes: a number of"),
                           ("#: program = 'a RUN.h5\n", "grid.conf:2: program: No closing quotation")):
            self.conf(text)
            self.assertIn(said, self.study("plan", "grid.conf", status=2)[1])
        with open("grid.conf", "w", encoding="utf-8") as file:
            file.write("#: resume = a RUN.h5\n")
        self.assertIn("without a line '#: program", self.study("plan", "grid.conf", status=2)[1])
        self.assertIn("nothing.conf: No such file", self.study("plan", "nothing.conf", status=2)[1])
        self.assertIn("page.md: report alone writes pages", self.study("run", "a.conf", "page.md", status=2)[1])
        self.assertIn("no experiment given", self.study("report", "page.md", status=2)[1])
        os.mkdir("other")
        self.assertIn("no experiment (*.conf) there", self.study("plan", "other", status=2)[1])
        self.conf("#: seed = 1\n")
        self.conf("#: seed = 1\n", "other/grid")
        self.assertIn("grid.conf has the same name", self.study("plan", "grid.conf", "other", status=2)[1])


class Time(unittest.TestCase):
    """The hours that are left, by a clock of the test."""

    def test_hours(self):
        now = [0.0]
        known, other = (types.SimpleNamespace(name=name, minutes=minutes) for name, minutes in (("known", 60.0), ("other", None)))
        runs = [running.Waiting(known, f"k{i}", {}, None) for i in range(4)]
        clock = running.Clock(runs, 1, lambda: now[0])
        self.assertAlmostEqual(clock.hours(), 4.0)
        clock.begin("k0")
        now[0] += 1800
        self.assertAlmostEqual(clock.hours(), 3.5)
        clock.end("k0", True) # took half an hour, as the others will
        self.assertAlmostEqual(clock.hours(), 1.5)
        clock.begin("k1")
        now[0] += 60
        clock.end("k1", False) # was resumed: no estimate for the others
        self.assertAlmostEqual(clock.hours(), 1.0)
        self.assertAlmostEqual(running.Clock(runs, 2, lambda: 0.0).hours(), 2.0)
        self.assertAlmostEqual(running.Clock(runs[:1], 2, lambda: 0.0).hours(), 1.0) # no run is cut into two
        clock = running.Clock([running.Waiting(other, "o0", {}, None), running.Waiting(other, "o1", {}, None)], 1, lambda: now[0])
        self.assertIsNone(clock.hours())
        clock.begin("o0")
        now[0] += 360
        clock.end("o0", True)
        self.assertAlmostEqual(clock.hours(), 0.1)


class Interval(unittest.TestCase):
    def test_student(self):
        """97.5 % quantiles, from tables."""
        for count, wanted in ((2, 12.706), (3, 4.303), (5, 2.776), (10, 2.262), (11, 2.228), (12, 2.201), (21, 2.086), (31, 2.042), (121, 1.980)):
            with self.subTest(count):
                self.assertAlmostEqual(rule.student(count), wanted, delta=0.0015)
        self.assertAlmostEqual(rule.half_width([0.0, 2.0, 1.0]), 4.30265 / 3 ** 0.5)


class Reading(unittest.TestCase):
    def stopped(self, call, *arguments):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
            call(*arguments)
        self.assertEqual(said.getvalue().count("\n"), 1)
        return said.getvalue()

    def test_runs_of_the_same_name(self):
        for text, file, one, other in (
                ("#: lr+wd = 0.1+0 0.1+1 0.3+0\n", "grid-0.1.h5", "lr = 0.1, wd = 1", "lr = 0.1, wd = 0"),
                ("#: device = cuda:0 cuda:1\n", "grid-cuda.h5", "device = 1", "device = 0"),
                ("#: a = x-y x\n#: b = z y-z\n", "grid-x-y-z.h5", "a = x, b = y-z", "a = x-y, b = z"),
                ("#: seed = 1 2\n#: seed = 3\n", "grid-3.h5", "seed = 3", "seed = 3"),
                ("#: a = 1 1-x\n#: after x-y = info RUN.h5\n#: after y = info RUN.h5\n", "grid-1-x-y.tsv", "a = 1-x", "a = 1")):
            with self.subTest(text):
                self.assertEqual(self.stopped(experiment.Experiment, "grid.conf", text),
                                 f"statrec study: grid.conf ({one}): the same name {file} as grid.conf ({other}): "
                                 "give a value another name, LABEL:VALUE\n")

    def test_experiments_whose_runs_have_the_same_name(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        for name, text in (("grid", "#: seed = 1\n#: norm = bn\n"), ("grid-1", "#: norm = ln bn\n"), ("grids", "nothing of it")):
            with open(f"{folder}/{name}.conf", "w", encoding="utf-8") as file:
                file.write(text)
        for name in "grid", "grid-1":
            said = self.stopped(experiment.experiments, types.SimpleNamespace(confs=[f"{folder}/{name}.conf"]))
            self.assertIn("the same name grid-1-bn.h5 as", said)

    def test_lines_are_those_of_train(self):
        text = ("steps=60\n lr = 0.3 # the big one\ntags = a b c\nname = \"x # \\\"y\\\" \" # it\ncolour = a#b\nempty =\nlast = # nothing\n"
                "# a = comment\n\nsteps = 70\r\n  #: seed = 1\n")
        found = experiment.Experiment("grid.conf", text)
        self.assertEqual(found.common, {"steps": "70", "lr": "0.3", "tags": "a b c", "name": 'x # "y" ', "colour": "a#b", "empty": "", "last": ""})
        self.assertEqual([name for name, _, _ in found.runs()], ["grid-1"])
        for line, said in (("deep", "grid.conf:1: 'deep' is not of the form 'key = value'"), ("a#b = c", "is not of the form"),
                           ('a = "b', "grid.conf:1: value of a: no quoted text"), ('a = "b" c', "value of a"), (r'a = "\q"', "value of a")):
            self.assertIn(said, self.stopped(experiment.Experiment, "grid.conf", line + "\n"))
            self.assertEqual(experiment.Experiment("grid.conf", line + "\n", archived=True).common, {})

    def test_another_program(self):
        found = experiment.Experiment("a/grid.conf", "#: program = p '--run file' RUN.h5\nepochs = 3\n#: seed = 1\n")
        self.assertEqual((found.program, found.common, found.minutes), (["p", "--run file", "RUN.h5"], {"epochs": "3"}, None))


if __name__ == "__main__":
    unittest.main()
