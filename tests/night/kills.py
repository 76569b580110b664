"""kill -9 at a random moment of a writer that replaces a file. The path then has the old or the new version, complete.
The next call writes the new one, at once or after the partial file that it names is removed, and leaves no other
files."""
import os
import shutil
import signal
import subprocess
import time

from cases import all_cases, arguments, random_of, summed

given = arguments("kills", 200)
runs, work = (os.path.join(given.folder, name) for name in ("runs", "work"))
SMALL = ("statrec train --model transformer --preset mini --embed-dim 16 --ffn-dim 16 --heads 2 --encoder-layers 1 "
         "--decoder-layers 1 --data synth-pairs --max-tokens 256 --threads 1 --quiet --limit 60 --max-steps 8 --checkpoint-every 4")
# name: the writer (A is a or b), and its path
WRITERS = {
    "report": ("statplot report ../runs/A.h5 -o out", "out"),
    "page": ("statrec view ../runs/A.h5 --export out.html", "out.html"),
    "figure": ("statplot layers ../runs/A.h5 -o out.pdf", "out.pdf"),
    "copy": ("statrec copy ../runs/A.h5 --force -o out.h5", "out.h5"),
    "recovered": ("statrec recover ../runs/A.h5 --force -o out.h5", "out.h5"),
    "average": ("statrec average ../runs/A-0000004.ckpt ../runs/A-0000008.ckpt --force -o out.ckpt", "out.ckpt"),
    "archive": ("statrec export ../runs/A.h5 --npz --force -o out.npz", "out.npz"),
    "text": ("statrec dictionary ../runs/A.words --force -o out.txt", "out.txt"),
}


def prepare():
    """Runs a and b, and the word lists a.words and b.words."""
    if os.path.exists(runs):
        return
    os.makedirs(runs + "-new")
    for name, options in (("a", "--norm bn --seed 1"), ("b", "--norm bn --seed 2")):
        subprocess.run(f"{SMALL} {options} -o {name}.h5".split(), cwd=runs + "-new", check=True, capture_output=True)
        with open(os.path.join(runs + "-new", name + ".words"), "w", encoding="utf-8") as out:
            out.writelines(f"{name}{number % 997}\n" for number in range(40000))
    os.rename(runs + "-new", runs)


def whole(place):
    """{path: bytes} of a file or a folder; None if it does not exist."""
    if os.path.isfile(place):
        with open(place, "rb") as file:
            return {"": file.read()}
    found = {}
    for folder, _, names in os.walk(place):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                found[os.path.relpath(os.path.join(folder, name), place)] = file.read()
    return found or None


def page(place):
    """Summary of a page, whose element names are random: the runs that it shows, and whether it is complete."""
    text = next(iter((whole(place) or {"": b""}).values())).decode("utf-8", "replace")
    return [name for name in ("a.h5", "b.h5") if name in text], text.rstrip().endswith("</html>")


def losses(place):
    """Summary of a run file, which contains its time: exit status of check, and all losses."""
    folder, name = os.path.split(place)
    checked = subprocess.run(["statrec", "check", name], cwd=folder, capture_output=True, check=False)
    read = subprocess.run(["stat-curve", name, "--stat", "loss"], cwd=folder, capture_output=True, text=True, check=False)
    return checked.returncode, [line for line in read.stdout.splitlines() if not line.startswith("#")]


SEEN = {"page": page, "recovered": losses}  # others are bit-identical


def start(name, which):
    environment = {**os.environ, "TMPDIR": os.path.join(work, "tmp")}
    return subprocess.Popen(WRITERS[name][0].replace("A", which).split(), cwd=work, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, env=environment)


def anew(old=None, place=None):
    """Makes an empty work folder, or one with the old file at its path."""
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(os.path.join(work, "tmp"))
    if old:
        (shutil.copytree if os.path.isdir(old) else shutil.copy)(old, os.path.join(work, place))


def finished(name, which):
    """Returns the path of the writer's result for a run; stores the seconds that it takes."""
    place = WRITERS[name][1]
    kept = os.path.join(given.folder, f"{name}-{which}", place)
    if not os.path.exists(kept):
        anew()
        began = time.monotonic()
        text = start(name, which).communicate()[1].decode("utf-8", "replace")
        if not os.path.exists(os.path.join(work, place)):
            raise SystemExit(f"kills: {name}: {text}")
        SECONDS[name] = time.monotonic() - began
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        os.rename(os.path.join(work, place), kept)
    return kept


def left():
    """Lists the files beside the result, and temporary ones."""
    return sorted(os.listdir(work) + [os.path.join("tmp", name) for name in os.listdir(os.path.join(work, "tmp"))])


SECONDS = {}


def one(case):
    rng, name = random_of(given, case), sorted(WRITERS)[case % len(WRITERS)]
    look, place = SEEN.get(name, whole), WRITERS[name][1]
    old, new = finished(name, "a"), finished(name, "b")
    anew(old, place)
    killed = start(name, "b")
    # half of them in the last quarter, when the file gets its name
    moment = (rng.random() if rng.random() < 0.5 else rng.uniform(0.75, 1.1)) * SECONDS.setdefault(name, 1.0)
    time.sleep(moment)
    os.killpg(killed.pid, signal.SIGKILL)  # its process remains until it is waited for
    killed.communicate()
    here, before, after = look(os.path.join(work, place)), look(old), look(new)
    told = f"{name}, killed after {moment:.3f} of {SECONDS[name]:.3f} s"
    if here not in (before, after):
        return summed([(told, "neither the old one nor the new one")])
    text = start(name, "b").communicate()[1].decode("utf-8", "replace").strip()
    if f": {place}.part: exists" in text:  # it may be another program's, so that the user removes it
        os.unlink(os.path.join(work, place + ".part"))
        text = start(name, "b").communicate()[1].decode("utf-8", "replace").strip()
    if look(os.path.join(work, place)) != after:
        return summed([(told, f"the next call does not write the new one: {text[-200:]}")])
    if left() != sorted([place, "tmp"]):
        return summed([(told, f"the next call leaves {' '.join(left())}")])
    return summed([(told, "ok")])


prepare()
all_cases(given, one)
