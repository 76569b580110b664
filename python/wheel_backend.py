#!/usr/bin/env python3
"""Makes the wheel of this package: usage: wheel_backend.py DIRECTORY

A wheel of pure Python is a zip archive with three files about it, so that this needs neither
setuptools nor the network. pip calls the same functions (PEP 517, PEP 660). The same sources give
the same bytes.
"""
import base64
import hashlib
import os
import re
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)

METADATA = """Metadata-Version: 2.1
Name: statrec
Version: {version}
Summary: Statistics of normalization layers, recorded in any training loop
License: MIT
Requires-Python: >=3.9
Provides-Extra: arrays
Requires-Dist: numpy; extra == "arrays"
Provides-Extra: frames
Requires-Dist: numpy; extra == "frames"
Requires-Dist: pandas; extra == "frames"
Requires-Dist: xarray; extra == "frames"
Provides-Extra: torch
Requires-Dist: torch; extra == "torch"
Description-Content-Type: text/markdown

{description}"""

WHEEL = """Wheel-Version: 1.0
Generator: statrec
Root-Is-Purelib: true
Tag: py3-none-any
"""


def _read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def version():
    """VERSION of the Makefile."""
    found = re.search(rb"^VERSION\s*:=\s*(\S+)", _read(TOP, "Makefile"), re.MULTILINE)
    if not found:
        raise SystemExit(f"wheel_backend: no line 'VERSION := ' in {os.path.join(TOP, 'Makefile')}")
    return found.group(1).decode()


def _sources():
    """{name in the wheel: content} of the package, with the version written into it."""
    found = {}
    for directory, folders, names in os.walk(os.path.join(HERE, "statrec")):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(directory, name)
                found[os.path.relpath(path, HERE).replace(os.sep, "/")] = _read(path)
    text = f'"""The version of this package."""\nversion = "{version()}"\n'
    found["statrec/_version.py"] = text.encode()
    return found


def _about():
    """{name in *.dist-info: content}, without RECORD."""
    description = _read(TOP, "docs", "python.md").decode()
    return {"METADATA": METADATA.format(version=version(), description=description).encode(),
            "WHEEL": WHEEL.encode(), "licenses/LICENSE": _read(TOP, "LICENSE")}


def _write(directory, contents):
    """The wheel of these files; its name."""
    stem = f"statrec-{version()}"
    contents = {**contents, **{f"{stem}.dist-info/{name}": content
                               for name, content in _about().items()}}
    lines = [f"{name},sha256={_digest(content)},{len(content)}"
             for name, content in contents.items()]
    record = f"{stem}.dist-info/RECORD"
    contents[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    os.makedirs(directory, exist_ok=True)
    name = f"{stem}-py3-none-any.whl"
    path = os.path.join(directory, name)
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, content in contents.items():
            about = zipfile.ZipInfo(member, (2020, 1, 1, 0, 0, 0))
            about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            wheel.writestr(about, content)
    os.replace(path + ".new", path)
    return name


def _digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


# -- what pip calls ---------------------------------------------------------------------------

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517."""
    return _write(wheel_directory, _sources())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 660: a wheel that points at this checkout."""
    return _write(wheel_directory, {"statrec-checkout.pth": (HERE + "\n").encode()})


def build_sdist(sdist_directory, config_settings=None):
    """There is none: the repository is the source."""
    raise SystemExit("statrec: no source distribution; `make wheel`, or `pip install ./python`")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: wheel_backend.py DIRECTORY")
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))
