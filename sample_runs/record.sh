#!/bin/sh
# Records sample runs again, from the data sets in $STATREC_SHARED/data (default ../shared/data).
# Run in the root of the checkout: sample_runs/record.sh BIN_DIRECTORY [NAME...]; without names: all.
# Of a run whose NAME.conf has a line "# Thinned: OPTIONS", the copy by `statrec copy OPTIONS` is kept.
set -eu
bin=$1
shift
here=sample_runs
data=${STATREC_SHARED:-../shared}/data
if [ $# -eq 0 ]; then
    for conf in "$here"/cv_*.conf "$here"/nlp_*.conf "$here"/shares_*.conf "$here"/pairs_*.conf \
        "$here"/figures/*.conf; do
        name=${conf#"$here"/}
        set -- "$@" "${name%.conf}"
    done
fi
for name; do
    set=$(sed -n 's|^data-dir = .*/||p' "$here/$name.conf")
    thinned=$(sed -n 's|^# Thinned: ||p' "$here/$name.conf")
    "$bin/statrec" train -c "$here/$name.conf" --data-dir "$data/$set" -o "$here/$name.h5" --force --quiet >/dev/null
    if [ -n "$thinned" ]; then
        # shellcheck disable=SC2086 # several options
        "$bin/statrec" copy "$here/$name.h5" $thinned -o "$here/$name.thin.h5" >/dev/null
        mv "$here/$name.thin.h5" "$here/$name.h5"
    fi
    printf '%s.h5: %s bytes\n' "$name" "$(wc -c <"$here/$name.h5")"
done
