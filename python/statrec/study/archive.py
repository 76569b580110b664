"""The archives of runs that are done: FOLDER/runs/NAME.tar.xz beside FOLDER/NAME.conf, the same runs always the same bytes."""
import contextlib
import fcntl
import io
import lzma
import os
import tarfile

from .experiment import Experiment, finished, own_name, put, remove, stop, unended
from .settings import after_key, after_text, check, difference, keep, settings_of

# Run files are numbers of 4 and 8 bytes: 5 % smaller than by the preset alone
PACKING = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 2, "pb": 2}]


def archive_of(experiment):
    return os.path.join(os.path.dirname(experiment.path), "runs", f"{experiment.name}.tar.xz")


def members_of(path):
    """{name: bytes} of an archive, {}: there is none."""
    if not os.path.exists(path):
        return {}
    try:
        with tarfile.open(path, "r:xz") as archive:
            return {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        stop(f"{path}: {error}")


def lines_of(experiment, settings, labels):
    """{option or mark: text} of a run and its kept files; labels: of the commands after it."""
    after = {after_key(label): after_text(experiment.after[label]) for label in labels if label in experiment.after}
    return {**settings_of(experiment, settings), **after, **({} if experiment.keeps_runs else {"#: archive": "after"})}


def changed(experiment, then):
    """The first setting of archived runs that the experiment has not now, as settings.difference; None: there is none. A line
    `after` that is new can be made of the run files, where these are kept."""
    now = {name: settings for name, settings, _ in experiment.runs()}
    labels = then.after if experiment.keeps_runs else {**then.after, **experiment.after}
    pairs = (difference(lines_of(then, settings, labels), lines_of(experiment, now.get(name, settings), labels))
             for name, settings, _ in then.runs())
    return next(filter(None, pairs), None)


def check_settings(args, experiment, then):
    """Stops where archived runs are not those that the experiment describes now."""
    differs = changed(experiment, then)
    if differs:
        stop(f"{os.path.dirname(then.path)}: recorded with other settings than {experiment.path} ({differs[0]}, now {differs[1]}): "
             f"remove it, and the experiment's runs in {args.out}, to run anew")


def files_of(experiment, name):
    """The files of OUT with the kept parts of a run and of the commands after it."""
    return [f"{name}.h5"] * experiment.keeps_runs + [f"{name}-{label}.tsv" for label in experiment.after]


def archived(experiment, members):
    """The experiment as it was when its runs were archived."""
    conf = f"{experiment.name}.conf"
    return Experiment(os.path.join(archive_of(experiment), conf), members.get(conf, b"").decode(), archived=True)


def unpack(args, experiment):
    """The experiment's archived runs into OUT, where no run is another one."""
    members = members_of(archive_of(experiment))
    if members:
        then = archived(experiment, members)
        check_settings(args, experiment, then)
        os.makedirs(args.out, exist_ok=True)
        for name, settings, _ in experiment.runs():
            files = [file for file in files_of(experiment, name) if file in members]
            for file in files:
                put(os.path.join(args.out, file), members[file])
            if files:
                keep(args, then, name, settings, then.after)
            if f"{name}.h5" in files:
                remove(unended(args, name))
    check(args, experiment)


def check_kept(experiment):
    """Stops where archived runs are none of the experiment's now: a new archive would be without them."""
    members = members_of(archive_of(experiment))
    now = {name for name, _, _ in experiment.runs()}
    then = archived(experiment, members) if members else None
    gone = [name for name, _, _ in then.runs() if name not in now and set(files_of(then, name)) & set(members)] if then else []
    if gone:
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        stop(f"{archive_of(experiment)}: {experiment.path} has no longer {', '.join(gone[:3])}{more}, which would be lost: put the values "
             "back, in their order, or move the archive away")


def add_member(archive, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


@contextlib.contextmanager
def locked(folder):
    """Another process that packs waits."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def contents(args, experiment, members):
    """{name: bytes} of the archive: what OUT has of runs that are done, else what the archive has of them."""
    found = {}
    for name in sorted(name for name, _, _ in experiment.runs()):
        done = finished(args, experiment, name)
        for file in files_of(experiment, name):
            path = os.path.join(args.out, file)
            if done and os.path.exists(path): # a run that diverged has nothing after it
                with open(path, "rb") as opened:
                    found[file] = opened.read()
            elif file in members:
                found[file] = members[file]
    return found


def pack(args, experiment):
    """The experiment's runs that are done, kept in its archive. The same runs make the same bytes."""
    path, folder = archive_of(experiment), os.path.dirname(archive_of(experiment))
    if not any(finished(args, experiment, name) for name, _, _ in experiment.runs()):
        return
    os.makedirs(folder, exist_ok=True)
    with locked(folder):
        members = members_of(path)
        files, conf = contents(args, experiment, members), f"{experiment.name}.conf"
        if [conf, *files] == list(members):
            return
        with lzma.open(own_name(path), "wb", filters=PACKING) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
            with open(experiment.path, "rb") as file:
                add_member(archive, conf, file.read())
            for name, data in files.items():
                add_member(archive, name, data)
        os.replace(own_name(path), path)
