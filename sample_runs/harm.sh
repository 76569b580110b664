#!/bin/sh
# Prints src/diagnose/harm_ranges.h: each statistic at the worst site of the recorded runs that validated both
# ways, of those that lose nothing in evaluation and of those that lose something. Run in the root of the checkout:
#     sample_runs/harm.sh BIN_DIRECTORY >harm.h && mv harm.h src/diagnose/harm_ranges.h
# and build again. The runs: every *.h5 of this folder, and those of the archives below.
set -eu
bin=$1
unpacked=$(mktemp -d)
trap 'rm -r "$unpacked"' EXIT
trap 'exit 1' HUP INT TERM
for archive in gap_translation study/runs/padding watched/calibration; do
    tar -xJf "sample_runs/$archive.tar.xz" -C "$unpacked"
done
cat <<'END'
/* harm_ranges.h -- what statistics say of harm, made by sample_runs/harm.sh: do not edit.
 *
 * X(statistic, least and largest value at the worst site and number of runs, of those that lose
 * nothing in evaluation by running statistics, and of those that lose something)
 *
 * The runs, and their metric with running statistics less that with batch statistics:
END
"$bin/statrec" diagnose --harm sample_runs/*.h5 "$unpacked"/*.h5 |
    awk '{ if (sub(/ \\$/, "")) printf "%-99s\\\n", $0; else print }'
