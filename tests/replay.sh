#!/bin/sh
# usage: replay.sh DIRECTORY TARGET...
# Gives each target of DIRECTORY the files of tests/fuzz/corpus/TARGET, in no more memory than their
# contents warrant. One line; one more for each input that breaks its target, and exit status 1. A
# target without inputs is a fault, and so are inputs without a target.
[ $# -ge 2 ] || { echo "usage: replay.sh DIRECTORY TARGET..." >&2; exit 2; }
corpus=$(dirname "$0")/fuzz/corpus
directory=$1 faults=0 inputs=0
shift
fault() {
    echo "$*"
    faults=$((faults + 1))
}
for target in "$@"; do
    if said=$("$directory/$target" "$corpus/$target" 2>&1); then
        inputs=$((inputs + ${said%% *}))
    else
        fault "$target: ${said:-no inputs in $corpus/$target}"
    fi
done
for folder in "$corpus"/*/; do
    name=$(basename "$folder")
    case " $* " in *" $name "*) ;; *) fault "$folder: no target is called so" ;; esac
done
[ $faults -eq 0 ] || exit 1
echo "replay: $inputs inputs, $# targets: none breaks"
