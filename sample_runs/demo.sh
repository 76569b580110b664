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
"$bin/stat-distance" --site first demo/cv.h5 demo/nlp.h5 | grep -v '^#' | column -t -s "$(printf '\t')" ||
    "$bin/stat-distance" --site first demo/cv.h5 demo/nlp.h5
printf '\ndemo/: '
ls demo
