#!/bin/sh
# usage: replay.sh DIRECTORY TARGET...
# Runs each fuzz target of DIRECTORY on the files of tests/fuzz/corpus/TARGET. The target limits
# memory by the size of its input. Prints one line. Prints a line for each input that fails, each
# target without inputs and each corpus folder without a target; then exits with 1.
[ $# -ge 2 ] || { echo "usage: replay.sh DIRECTORY TARGET..." >&2; exit 2; }
corpus=$(dirname "$0")/fuzz/corpus
directory=$1 faults=0 inputs=0
shift
fault() {
    echo "$*"
    faults=$((faults + 1))
}
for target in "$@"; do
    if output=$("$directory/$target" "$corpus/$target" 2>&1); then
        inputs=$((inputs + ${output%% *}))
    else
        fault "$target: ${output:-no inputs in $corpus/$target}"
    fi
done
for folder in "$corpus"/*/; do
    name=$(basename "$folder")
    case " $* " in *" $name "*) ;; *) fault "$folder: no target has this name" ;; esac
done
[ $faults -eq 0 ] || exit 1
echo "replay: $inputs inputs, $# targets: all passed"
