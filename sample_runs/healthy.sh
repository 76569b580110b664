#!/bin/sh
# Prints src/diagnose/healthy_ranges.h: what is usual, by the runs of this folder that ended
# complete and at the method's usual settings. Run in the root of the checkout:
#     sample_runs/healthy.sh BIN_DIRECTORY >ranges.h && mv ranges.h src/diagnose/healthy_ranges.h
# and build again. Vision: every cv_*.h5; text, of which there is only the embedding's rank: every nlp_*.h5; watched:
# those that watched/train.py --calibrate records.
set -eu
bin=$1
unpacked=$(mktemp -d)
trap 'rm -r "$unpacked"' EXIT
trap 'exit 1' HUP INT TERM
tar -xJf sample_runs/watched/calibration.tar.xz -C "$unpacked"
cat <<'END'
/* healthy_ranges.h -- what recorded runs usually span, made by sample_runs/healthy.sh: do not edit.
 *
 * X(statistic, kind of the runs, least, largest, runs, sites or series with an estimate)
 */
#define HEALTHY_RANGES(X)                                                                          \
END
{
    "$bin/statrec" diagnose --healthy vision sample_runs/cv_*.h5
    "$bin/statrec" diagnose --healthy text sample_runs/nlp_*.h5
    "$bin/statrec" diagnose --healthy watched "$unpacked"/*.h5
} | sed '$s/ \\$//' | awk '{ if (sub(/ \\$/, "")) printf "%-99s\\\n", $0; else print }'
