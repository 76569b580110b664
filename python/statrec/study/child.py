"""child.py MARK WORDS...: runs a program and removes the file MARK where it ends with status 0, also if the study that began it
has ended by then. SIGTERM goes to the program alone, not to its own processes."""
import contextlib
import os
import signal
import subprocess
import sys


def main(mark, *words):
    """The program's exit status, as a shell tells it."""
    asked = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number) or program and program.terminate())
    program = None
    try:
        program = subprocess.Popen(words)
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)
        return 127
    if asked:
        program.terminate()
    status = program.wait()
    if status == 0:
        with contextlib.suppress(FileNotFoundError): # an archive had the run meanwhile
            os.remove(mark)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
