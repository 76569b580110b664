# start.sh -- sourced by the scripts of the night: finds a python with h5py and runs tests/night/NAME.py.
# shellcheck shell=sh
cd "$(dirname "$0")/.." || exit 1

night() {
    name=$1
    shift
    [ $# -ge 1 ] || { sed -n '/^# usage/,/^[^#]/{/^# shell/d; s/^# //p}' "tests/$name.sh" >&2; exit 2; }
    for python in "${STATREC_PYTHON:-python3}" python3 /usr/bin/python3; do
        if "$python" -c 'import h5py' 2>/dev/null; then exec "$python" -B "tests/night/$name.py" "$@"; fi
    done
    echo "$name: skipped: no python3 with h5py"
    exit 0
}
