"""The version of this package. A wheel has a file of this name with the version; here it is VERSION
of the Makefile."""
import os
import re


def _of_makefile():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
    try:
        with open(os.path.join(top, "Makefile"), encoding="utf-8") as makefile:
            found = re.search(r"^VERSION\s*:=\s*(\S+)", makefile.read(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else "unknown"


version = _of_makefile()
