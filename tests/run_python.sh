#!/bin/sh
# usage: run_python.sh BUILDDIR [TEST...]
# Runs python/tests with the library and programs of BUILDDIR. Uses $STATREC_PYTHON, or the first
# python3 with h5py, or any python3. Skips and counts tests whose packages are missing. Without
# python3 it skips everything and prints why.
[ $# -ge 1 ] || { echo "usage: run_python.sh BUILDDIR [TEST...]" >&2; exit 2; }
TOP=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
BUILD=$(cd "$1" && pwd -P) || exit 1
shift

find_python() {
    for python in ${STATREC_PYTHON:-python3 /usr/bin/python3}; do
        "$python" -c "import sys; assert sys.version_info >= (3, 9); $1" 2>/dev/null && return
    done
    return 1
}
find_python 'import h5py' || find_python '' || { echo "python: skipped: no python3, version 3.9 or newer"; exit 0; }

# The sanitizer must be loaded first. It would report Python's arena as a leak.
if nm -D "$BUILD/lib/libstatrec.so" 2>/dev/null | grep -q __asan_init; then
    STATREC_PRELOAD=$("${CC:-gcc}" -print-file-name=libasan.so)
    ASAN_OPTIONS=detect_leaks=0
    export STATREC_PRELOAD ASAN_OPTIONS
fi
STATREC_LIBRARY=$BUILD/lib/libstatrec.so STATREC_BIN=$BUILD/bin
PYTHONPATH=$TOP/python PYTHONDONTWRITEBYTECODE=1
# Tensors here are small: a second thread would only wait, and take a core from other tests.
OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
export STATREC_LIBRARY STATREC_BIN PYTHONPATH PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS OMP_WAIT_POLICY
[ -z "$STATREC_PRELOAD" ] || LD_PRELOAD=$STATREC_PRELOAD
[ -z "$LD_PRELOAD" ] || export LD_PRELOAD
exec timeout 2400 "$python" "$TOP/python/tests/run.py" "$@"
