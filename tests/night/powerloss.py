"""Power losses: notes the calls of a program that writes checkpoints, archives, copies or text. Simulates the disk
after a loss at each of them. Changed names are durable; each file has any part of the bytes since its last fsync. A
file with its final name must be valid: the reader accepts it, and it is one of the finished versions."""
import os
import shutil
import subprocess

from cases import all_cases, arguments, random_of, run, summed

given = arguments("powerloss", 400)
library = os.path.join(given.folder, "powerloss.so")
subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "tests/night/powerloss.c", "-o", library, "-ldl"], check=True)
SMALL = ("--model transformer --preset mini --embed-dim 16 --ffn-dim 16 --heads 2 --encoder-layers 1 --decoder-layers 1 "
         "--data synth-pairs --max-tokens 256 --threads 1 --quiet --limit 60")
# name: command; preparation; the endings of files that must be valid, and their readers
WRITERS = {
    "checkpoints": (f"statrec train {SMALL} --max-steps 6 --checkpoint-every 2 -o run.h5", None, {".ckpt": "statrec check FILE"}),
    "forced": (f"statrec train {SMALL} --max-steps 6 --checkpoint-every 2 --seed 2 --force -o run.h5",
               f"statrec train {SMALL} --max-steps 6 --checkpoint-every 2 -o run.h5",
               {".ckpt": "statrec check FILE", ".h5": "statrec check FILE", ".old": "statrec check FILE"}),
    "archive": ("statrec export run.h5 --npz -o x.npz --force",
                f"statrec train {SMALL} --max-steps 2 -o run.h5 && statrec export run.h5 --npz -o x.npz", {".npz": "python"}),
    "copy": ("statrec copy run.h5 -o new.h5", f"statrec train {SMALL} --max-steps 2 -o run.h5", {".h5": "statrec check FILE"}),
    "average": ("statrec average run-0000002.ckpt -o mean.ckpt --force",
                f"statrec train {SMALL} --max-steps 2 --checkpoint-every 2 -o run.h5 && "
                "statrec average run-0000002.ckpt -o mean.ckpt", {".ckpt": "statrec check FILE"}),
    "text": ("statrec dictionary words -o d.txt --force",
             "printf 'a b a\\n' >words; statrec dictionary words -o d.txt", {".txt": "text"}),
}


def read_log(path):
    """[(kind, path, other, offset, bytes)]"""
    calls = []
    with open(path, "rb") as log:
        while head := log.readline():
            kind, name, other, at, size = head.decode().rstrip("\n").split("\t")
            calls.append((kind, name, other, int(at), log.read(int(size))))
    return calls


def noted(name):
    """The folder before the command, and its calls."""
    before, after = (os.path.join(given.folder, f"{name}-{when}") for when in ("before", "after"))
    log = os.path.join(given.folder, name + ".log")
    if not os.path.exists(after):
        for folder in (before, after + "-new"):
            shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(before)
        command, prepare, _ = WRITERS[name]
        if prepare:
            subprocess.run(prepare, shell=True, cwd=before, check=True, capture_output=True)
        shutil.copytree(before, after + "-new")
        if os.path.exists(log):
            os.unlink(log)
        subprocess.run(command.split(), cwd=after + "-new", check=True, capture_output=True,
                       env={**os.environ, "LD_PRELOAD": library, "POWERLOSS_LOG": log})
        os.rename(after + "-new", after)
    return before, after, after + "-new", read_log(log)


class Disk:
    """Files by their names in one folder: durable bytes of each, and writes since."""

    def __init__(self, before, root):
        self.root = root
        self.names = {}
        for name in os.listdir(before):
            with open(os.path.join(before, name), "rb") as file:
                self.names[name] = {"bytes": bytearray(file.read()), "waiting": []}

    def key(self, path):
        if os.path.isabs(path) and os.path.dirname(path) != self.root:
            return None
        return os.path.basename(path)

    def apply(self, call):
        kind, path, other, at, data = call
        name = self.key(path)
        if name is None:
            return
        if kind == "write" or kind == "truncate":
            self.names.setdefault(name, {"bytes": bytearray(), "waiting": []})["waiting"].append((kind, at, data))
        elif kind == "sync":
            self.names.setdefault(name, {"bytes": bytearray(), "waiting": []}).update(bytes=bytearray(data), waiting=[])
        elif kind == "named":
            file = self.names.setdefault(name, {"bytes": bytearray(), "waiting": []})
            now = bytearray(file["bytes"])
            for change in file["waiting"]:
                change_bytes(now, change)
            if now != data:
                file["waiting"].append(("write", 0, data))
        elif kind == "rename" and name in self.names:
            self.names[self.key(other)] = self.names.pop(name)
        elif kind == "link" and name in self.names:
            self.names[self.key(other)] = self.names[name]
        elif kind == "unlink":
            self.names.pop(name, None)

    def store(self, folder, rng):
        for name, file in self.names.items():
            data = bytearray(file["bytes"])
            for change in file["waiting"]:
                if rng.random() < 0.5:
                    change_bytes(data, change)
            with open(os.path.join(folder, name), "wb") as out:
                out.write(data)


def change_bytes(data, change):
    kind, at, new = change
    if kind == "truncate":
        del data[at:]
        data.extend(bytes(at - len(data)))
        return
    data.extend(bytes(max(0, at + len(new) - len(data))))
    data[at:at + len(new)] = new


def is_whole(how, path, folder):
    if how == "text":
        with open(path, "rb") as file, open(os.path.join(given.folder, "text-before", "d.txt"), "rb") as whole:
            return file.read() == whole.read()
    if how == "python":
        import numpy
        import zipfile
        try:
            with zipfile.ZipFile(path) as archive:
                if archive.testzip():
                    return False
            with numpy.load(path) as arrays:
                return all(arrays[name] is not None for name in arrays.files)
        except (OSError, ValueError, zipfile.BadZipFile):
            return False
    return run(how.replace("FILE", os.path.basename(path)).split(), folder).status == 0


def one(case):
    rng = random_of(given, case)
    names = sorted(WRITERS)
    name = names[case % len(names)]
    before, _, root, calls = noted(name)
    disk = Disk(before, root)
    # most losses near a change of a name, which are the critical moments
    changes = [i for i, call in enumerate(calls) if call[0] in ("rename", "link", "unlink")]
    stop = rng.randrange(len(calls) + 1)
    if changes and rng.random() < 0.7:
        stop = min(len(calls), max(0, rng.choice(changes) + rng.choice((0, 1, 1, 2))))
    for call in calls[:stop]:
        disk.apply(call)
    folder = os.path.join(given.folder, "case")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    disk.store(folder, rng)
    results = []
    for file in sorted(os.listdir(folder)):
        how = WRITERS[name][2].get(os.path.splitext(file)[1])
        if how:
            path = os.path.join(folder, file)
            if file.endswith(".old"):
                os.rename(path, path[:-len(".old")] + "-old.ckpt")
                path = path[:-len(".old")] + "-old.ckpt"
            results.append((f"{name}, loss after call {stop} of {len(calls)}: {file}",
                            "ok" if is_whole(how, path, folder) else "is not whole"))
    return summed(results)


all_cases(given, one)
