"""Entry points: each becomes the program with its name, from the wheel or the checkout."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = (os.path.join(HERE, "_tree", "bin"),
          os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "release", "bin"))


def main() -> None:
    """Executes the program that this script is called like, with the same arguments."""
    name = os.path.basename(sys.argv[0])
    place = next(filter(os.path.isdir, PLACES), PLACES[0])
    path = os.path.join(place, name)
    os.environ.setdefault("STATREC_PYTHON", sys.executable)  # of statrec view
    try:
        os.execv(path, [name, *sys.argv[1:]])
    except OSError as reason:
        sys.exit(f"{name}: cannot run {path}: {reason.strerror}")
