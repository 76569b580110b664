"""Entry points of a wheel: each becomes the program of its own name in the package."""
import os
import sys

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_tree")


def main():
    """Executes the program that this script is called like, with the same arguments."""
    name = os.path.basename(sys.argv[0])
    path = os.path.join(TREE, "bin", name)
    try:
        os.execv(path, [name, *sys.argv[1:]])
    except OSError as reason:
        sys.exit(f"{name}: cannot run {path}: {reason.strerror}")
