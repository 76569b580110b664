#!/bin/sh
# Trains both demo models and draws their figures into demo/. usage: demo.sh BIN_DIRECTORY
set -eu
bin=$1
here=$(dirname "$0")
mkdir -p demo
"$bin/statrec" train -c "$here/demo_cv.conf" -o demo/cv.h5 --force
"$bin/statrec" train -c "$here/demo_nlp.conf" -o demo/nlp.h5 --force
for figure in fair fig2 fig3; do
    "$bin/statplot" $figure demo/cv.h5 demo/nlp.h5 -o demo/$figure.png
    "$bin/statplot" $figure demo/cv.h5 demo/nlp.h5 -o demo/$figure.pdf
done
printf '\nDistances of batch from running statistics at the first site of each run:\n'
table=$("$bin/stat-distance" --site first demo/cv.h5 demo/nlp.h5)
printf '%s\n' "$table" | awk -F '\t' '
    /^#/ { next }
    { row[++rows] = $0; for (i = 1; i <= NF; i++) if (length($i) > width[i]) width[i] = length($i) }
    END {
        for (r = 1; r <= rows; r++) {
            columns = split(row[r], cell)
            for (i = 1; i <= columns; i++) printf i < columns ? "%-" width[i] "s  " : "%s\n", cell[i]
        }
    }'
cd demo
set -- *
printf '\nin demo/: %s\n' "$*"
