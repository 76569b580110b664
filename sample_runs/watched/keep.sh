#!/bin/sh
# Records both sets of train.py and keeps their scalars: healthy.tar.xz, on which false
# alarms are counted, and calibration.tar.xz, from which sample_runs/healthy.sh and harm.sh take ranges. In the root of
# the checkout:
#     PATH=build/release/bin:$PATH PYTHONPATH=python sample_runs/watched/keep.sh PYTHON [DIRECTORY]
# PYTHON has torch and h5py. A second argument is a directory with files that are there already, in the folders healthy
# and calibration.
set -eu
python=$1
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT
trap 'exit 1' HUP INT TERM
recorded=${2:-$made/recorded}
if [ $# -lt 2 ]; then
    "$python" sample_runs/watched/train.py "$recorded/healthy"
    "$python" sample_runs/watched/train.py "$recorded/calibration" --calibrate
fi
for set in healthy calibration; do
    mkdir "$made/$set"
    for file in "$recorded/$set"/*.h5; do
        # vectors of the last step alone
        statrec copy "$file" -o "$made/$set/${file##*/}" --vectors-every 1000000
    done
    (cd "$made/$set" && tar -cf - --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -- *.h5) |
        xz --lzma2=preset=9e,lc=0,lp=2,pb=2 >"sample_runs/watched/$set.tar.xz"
done
