"""The archives of runs that are done: FOLDER/runs/NAME.tar.xz beside FOLDER/NAME.conf, the same runs always the same bytes."""
import io
import lzma
import os
import tarfile

from .experiment import Experiment, finished, put, stop

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


def check_settings(args, experiment, then):
    """Stops where archived runs are not those that the experiment describes now."""
    now, before = ({name: settings for name, settings, _ in each.runs()} for each in (experiment, then))
    changed = [name for name in before if name in now and before[name] != now[name]]
    if changed or any(getattr(then, what) != getattr(experiment, what)
                      for what in ("common", "after", "keeps_runs", "program")):
        stop(f"{os.path.dirname(then.path)}: recorded with other settings than {experiment.path}: remove "
             f"it, and the experiment's runs in {args.out}, to run anew")


def files_of(experiment, name):
    """The files of OUT that hold what is kept of a run, and what comes after it."""
    return [f"{name}.h5"] * experiment.keeps_runs + [f"{name}-{label}.tsv" for label in experiment.after]


def unpack(args, experiment):
    """The experiment's archived runs into OUT."""
    path, names = archive_of(experiment), [name for name, _, _ in experiment.runs()]
    members = members_of(path)
    if not members:
        return
    conf = f"{experiment.name}.conf"
    check_settings(args, experiment, Experiment(os.path.join(path, conf), members.get(conf, b"").decode(), archived=True))
    os.makedirs(args.out, exist_ok=True)
    for name in names:
        for file in files_of(experiment, name):
            if file in members:
                put(os.path.join(args.out, file), members[file])


def add_member(archive, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def pack(args, experiment):
    """The experiment's runs that are done, kept in its archive. The same runs make the same bytes."""
    path = archive_of(experiment)
    done = sorted(name for name, _, _ in experiment.runs() if finished(args, experiment, name))
    files = {f"{experiment.name}.conf": experiment.path}
    for file in (file for name in done for file in files_of(experiment, name)):
        if os.path.exists(os.path.join(args.out, file)): # a run that diverged has nothing after it
            files[file] = os.path.join(args.out, file)
    if not done or list(files) == list(members_of(path)):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with lzma.open(path + ".new", "wb", filters=PACKING) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, source in files.items():
            with open(source, "rb") as file:
                add_member(archive, name, file.read())
    os.replace(path + ".new", path)
