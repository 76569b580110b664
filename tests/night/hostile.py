"""Hostile files: run files, checkpoints, archives, corpora and sparse files beyond 4 GiB, each a mutation of a good one,
in every program that reads such files."""
import os
import shutil
import struct
import subprocess
import warnings
import zipfile

import h5py
import numpy as np

from cases import all_cases, arguments, random_of, run, summed, verdict_of

COUNTS = {"run": 500, "checkpoint": 1200, "archive": 100, "corpus": 150, "sparse": 50}
INTEGERS = [0, 1, -1, 2, 3, 7, 255, 256, 65535, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63 - 1, -(2**63)]
REALS = [0.0, -0.0, 1.0, -1.0, 1e-300, 1e300, -1e300, float("inf"), float("-inf"), float("nan"), 1e308, 5e-324]
TEXTS = ["", "a", "x" * 63, "x" * 5000, "%s%n", "../../etc/passwd", "a\nb", "\x1b[2J", "bn", "none", "\u202ereversed"]
SMALL = ("--model transformer --preset mini --embed-dim 16 --ffn-dim 16 --heads 2 --encoder-layers 1 --decoder-layers 1 "
         "--data synth-pairs --max-tokens 256 --threads 1 --quiet --limit 60").split()

warnings.simplefilter("ignore")
given = arguments("hostile", sum(COUNTS.values()), tuple(COUNTS))
good = os.path.join(given.folder, "good")


def prepare():
    """The files that are mutated."""
    if os.path.exists(os.path.join(good, "words.txt")):
        return
    shutil.rmtree(good, ignore_errors=True)
    os.makedirs(good)

    def make(*words):
        subprocess.run(words, cwd=good, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    options = ("--norm bn --decoder-norm pn --observe batch --max-steps 12 --validate-interval-updates 4 --spectra-every 3 "
               "--svd-every 4 --final-tid --pairs 5 --activations-every 2 --parameter-norms-every 1 --attention-stats "
               "--checkpoint-every 12 --record all").split()
    make("statrec", "train", *SMALL, *options, "-o", "run.h5")
    os.rename(os.path.join(good, "run-0000012.ckpt"), os.path.join(good, "transformer.ckpt"))
    for model in ("resnet20", "mnist_cnn"):
        make("statrec", "train", "--model", model, "--data", "synth-images", "--limit", "8", "--batch-size", "4",
             "--max-steps", "1", "--threads", "1", "--quiet", "--checkpoint-every", "end", "-o", model + ".h5")
        os.rename(os.path.join(good, model + "-0000001.ckpt"), os.path.join(good, model + ".ckpt"))
    make("statrec", "export", "transformer.ckpt", "--npz", "-o", "weights.npz")
    for name, text in (("de", "ein hund läuft\nein kleiner hund\nzwei hunde\n"),
                       ("en", "a dog runs\na small dog\ntwo dogs\n")):
        for split in ("train", "valid"):
            with open(os.path.join(good, f"{split}.{name}"), "w", encoding="utf-8") as out:
                out.write(20 * text)
    with open(os.path.join(good, "ner.conll"), "w", encoding="utf-8") as out:
        out.write(20 * "Anna B-PER\nlives O\nin O\nOslo B-LOC\n\n")
    with open(os.path.join(good, "words.txt"), "w", encoding="utf-8") as out:
        out.write("hund 3\nein 2\n")


def mutate_bytes(rng, data):
    """A few bytes, a cut, a repetition or a hole."""
    data = bytearray(data)
    kind = rng.randrange(5)
    if kind == 0 and data:
        del data[rng.randrange(len(data)):]
    elif kind == 1:
        at = rng.randrange(len(data) + 1)
        data[at:at] = data[at:at + rng.randrange(1, 400)] * rng.randrange(1, 50)
    elif kind == 2 and data:
        at = rng.randrange(len(data))
        data[at:at + 512] = bytes(min(512, len(data) - at))
    for _ in range(rng.randrange(1, 9) if kind > 2 else 0):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def odd_value(rng, old):
    """A value of the same type."""
    kind = np.asarray(old).dtype.kind
    if kind in "iu":
        return rng.choice(INTEGERS + [int(np.asarray(old).flat[0]) + rng.choice((-1, 1))] if np.size(old) else INTEGERS)
    if kind == "f":
        return rng.choice(REALS)
    return rng.choice(TEXTS)


def mutate_attribute(rng, thing):
    name = rng.choice(sorted(thing.attrs))
    old = thing.attrs[name]
    new = odd_value(rng, old)
    kind = rng.randrange(6)
    if kind == 0:
        del thing.attrs[name]
    elif kind == 1:
        thing.attrs[name] = rng.choice([np.int64(new) if isinstance(new, int) and abs(new) < 2**63 else 0, "text", 1.5])
    elif kind == 2:
        thing.attrs[name] = np.zeros(rng.choice((0, 1, 3, 1000)), "i8")
    else:
        array = np.asarray(old)
        if array.dtype.kind in "iuf" and array.shape == ():
            info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
            thing.attrs.modify(name, array.dtype.type(min(max(new, info.min), info.max) if info else new))
        else:
            thing.attrs[name] = str(new)


def mutate_dataset(rng, file, name):
    data = file[name]
    kind = rng.randrange(7)
    if kind == 0:
        del file[name]
    elif kind == 1 and data.ndim and data.maxshape != data.shape and data.chunks:
        data.resize(rng.choice([0, 1, data.shape[0] + 1, 2**20, 2**31, 2**40]), axis=0)
    elif kind == 2:
        del file[name]
        file[name] = np.zeros((3,) * rng.randrange(4), rng.choice(["i8", "f4", "f8", "i1"]))
    elif kind == 3:
        del file[name]
        file[name] = rng.choice([h5py.SoftLink("/state"), h5py.ExternalLink("other.h5", "/x"), h5py.SoftLink(name)])
    elif data.size and data.dtype.kind in "iuf":
        values = data[...]
        for _ in range(rng.choice((1, 1, 5, values.size))):
            new = odd_value(rng, values)
            if data.dtype.kind in "iu":
                new = min(max(new, np.iinfo(data.dtype).min), np.iinfo(data.dtype).max)
            with np.errstate(over="ignore"):
                values.flat[rng.randrange(values.size)] = new
        data[...] = values
    elif data.size and data.dtype.kind == "S":
        values = data[...]
        values.flat[rng.randrange(values.size)] = rng.choice(TEXTS).encode()[:data.dtype.itemsize]
        data[...] = values


def mutate_hdf5(rng, path):
    """One change by way of HDF5, so that its checksums are right, or some bytes."""
    if rng.random() < 0.15:
        with open(path, "rb") as file:
            data = mutate_bytes(rng, file.read())
        with open(path, "wb") as file:
            file.write(data)
        return
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        names = ["/"]
        file.visit(names.append)
        for _ in range(rng.choice((1, 1, 2, 4))):
            name = rng.choice(names)
            if name not in file:
                continue
            thing = file[name]
            if len(thing.attrs) and (rng.random() < 0.5 or not isinstance(thing, h5py.Dataset)):
                mutate_attribute(rng, thing)
            elif isinstance(thing, h5py.Dataset):
                mutate_dataset(rng, file, name)


def mutate_archive(rng, path):
    with zipfile.ZipFile(os.path.join(good, "weights.npz")) as source:
        entries = [(entry.filename, source.read(entry)) for entry in source.infolist()]
    i = rng.randrange(len(entries))
    name, data = entries[i]
    kind = rng.randrange(5)
    if kind == 0:
        head = data[:10] + data[10:].replace(b"(", rng.choice([b"(0, ", b"(-1, ", b"(9223372036854775807, "]), 1)
        entries[i] = (name, head[:8] + struct.pack("<H", len(head) % 65536) + head[10:])
    elif kind == 1:
        entries[i] = (rng.choice(["../x.npy", "a" * 300, ".npy", "x\n.npy"]), data)
    elif kind == 2:
        entries.append(entries[i])
    else:
        entries[i] = (name, mutate_bytes(rng, data))
    with zipfile.ZipFile(path, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as out:
        for name, data in entries:
            out.writestr(name, data)
    if rng.random() < 0.3:
        with open(path, "rb") as file:
            data = mutate_bytes(rng, file.read())
        with open(path, "wb") as file:
            file.write(data)


RUN_PROGRAMS = [f"{name} FILE" for name in sorted(os.listdir(given.bin)) if name.startswith("stat-")] + [
    "statrec info FILE", "statrec check FILE", "statrec diagnose FILE", "statrec list sites FILE",
    "statrec copy FILE -o copy.h5 --force", "statrec recover FILE -o copy.h5 --force",
    "statrec export FILE --npz -o copy.npz --force"]
CHECKPOINT_PROGRAMS = ["statrec check FILE", "statrec info FILE", "statrec export FILE --npz -o copy.npz --force",
                       "statrec average FILE -o copy.ckpt --force"]
TRAIN = "statrec train --threads 1 --embed-dim 8 --ffn-dim 8 --heads 2 --max-steps 1 --record none --quiet "
PAIRS = TRAIN + "--model transformer --preset mini --encoder-layers 1 --decoder-layers 1 --data parallel --data-dir . "
TAGS = (TRAIN + "--model tener --layers 1 --word-dim 4 --char-encoder none --data conll --data-dir . --trainpref FILE "
        "--validpref ner.conll")


def kind_of(case):
    """Kinds take turns, so that a part of the cases has all of them."""
    order = sorted((k / count, kind) for kind, count in COUNTS.items() for k in range(count))
    return order[case][1]


def make_sparse(rng, folder):
    """Files with holes, beyond 4 GiB or 2^31 values."""
    name = rng.choice(["run.h5", "transformer.ckpt", "weights.npz", "train.de", "ner.conll"])
    path = os.path.join(folder, name)
    size = os.path.getsize(path)
    if name == "run.h5" and rng.random() < 0.5:
        with h5py.File(path, "r+") as file:
            rows = rng.choice([2**31 // 64, 2**31 + 1, 2**33])
            for dataset in rng.sample(sorted(file["vectors"]), 2) + ["step"]:
                file["vectors"][dataset].resize(rows, axis=0)
    else:
        os.truncate(path, size + rng.choice([2**32, 2**32 + 1, 5 * 2**30, 2**33]))
    return name


def one(case):
    rng, kind = random_of(given, case), kind_of(case)
    folder = os.path.join(given.folder, "case")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(good, folder)
    if kind == "run":
        name, programs = "run.h5", rng.sample(RUN_PROGRAMS, 14)
    elif kind == "checkpoint":
        name, programs = rng.choice(["transformer.ckpt", "transformer.ckpt", "resnet20.ckpt", "mnist_cnn.ckpt"]), CHECKPOINT_PROGRAMS
    elif kind == "archive":
        name = "weights.npz"
        programs = ["statrec train " + " ".join(SMALL) + " --norm bn --decoder-norm pn --max-steps 1 --record none "
                    "--weights FILE"]
    elif kind == "corpus":
        name = rng.choice(["train.de", "valid.en", "ner.conll", "words.txt"])
        programs = ([TAGS] if name == "ner.conll" else [PAIRS + "--source-dictionary FILE"] if name == "words.txt" else
                    [PAIRS, "statrec dictionary FILE -o copy.txt --force", "statrec bpe learn -s 9 FILE"])
    else:
        name = make_sparse(rng, folder)
        programs = {"run.h5": RUN_PROGRAMS[::4], "transformer.ckpt": CHECKPOINT_PROGRAMS[:2], "ner.conll": [TAGS],
                    "train.de": ["statrec dictionary FILE -o copy.txt --force"],
                    "weights.npz": ["statrec train " + " ".join(SMALL) + " --max-steps 1 --record none --weights FILE"]}[name]
    path = os.path.join(folder, name)
    if kind in ("run", "checkpoint"):
        try:
            mutate_hdf5(rng, path)
        except (OSError, RuntimeError, TypeError, ValueError, KeyError, OverflowError):
            pass  # h5py refuses some changes; the file so far is a case too
    elif kind == "archive":
        mutate_archive(rng, path)
    elif kind == "corpus":
        with open(path, "rb") as file:
            data = mutate_bytes(rng, file.read())
        with open(path, "wb") as file:
            file.write(data)
    results = []
    for program in programs:
        outcome = run(program.replace("FILE", name).split(), folder)
        results.append((program.replace("FILE", name), verdict_of(outcome)))
    return summed(results)


prepare()
all_cases(given, one, lambda case: given.kind is None or kind_of(case) == given.kind)
