#!/bin/sh
# usage: sanitizers.sh tsan|memcheck BUILDDIR [--minutes M] ITEM...
#        sanitizers.sh tsan|memcheck: whether the tool is here; exit status 77 if not
# Runs test programs and trains each model, with two threads,
#   tsan      under clang's ThreadSanitizer: data races. BUILDDIR was built with MODE=tsan.
#   memcheck  under valgrind: reads of uninitialised or foreign memory, in the whole process. MemorySanitizer would report
#             all memory that HDF5, OpenBLAS, oneDNN and libzip write; valgrind tracks their writes.
# ITEM is a test program, a model of the table below, or `trainings`: all of these. JOBS at once (default: one per
# core). tests/sanitizers.tsan and tests/sanitizers.memcheck suppress findings inside libraries that are not ours, by
# name. Prints a line per item, and the findings. Logs stay in BUILDDIR/sanitizer. An item that passed runs again only
# if its program is newer, so a later call resumes. No item begins after M minutes (default: 55).
#
#   model                  data      options
trainings='
    resnet20               images
    resnet18               images    --preset mini --norm groupnorm --augment
    mnist_cnn              images    --norm rbn
    transformer            pairs     --preset mini --norm bn --observe batch --attention-stats --final-tid --final-batches 2
    transformer_classifier sentences --preset rt --norm pn --heads 2
    tener                  tags      --preset conll2003-mini --heads 2
    tensorized             text      --preset ptb-mini --norm bn --placement pre
    transformer_lm         text      --preset ptb-mini --heads 2 --svd-every 2 --activations-every 2
    transformer_xl         bytes     --preset enwik8-mini --heads 2 --head-dim 8 --mem-len 12
    mlp_parser             trees     --norm bn
'
usage() {
    echo "usage: sanitizers.sh tsan|memcheck BUILDDIR [--minutes M] ITEM..." >&2
    exit 2
}
skip() {
    echo "$1: skipped: no $2 (apt-get install $3)"
    exit 77
}
case ${1-} in
tsan)
    command -v clang >/dev/null || skip tsan clang "clang libomp-dev"
    archer=$(dirname "$(readlink -f "$(command -v clang)")")/../lib/libarcher.so # describes OpenMP's synchronization
    [ -e "$archer" ] || skip tsan libarcher.so libomp-dev
    ;;
memcheck) command -v valgrind >/dev/null || skip memcheck valgrind valgrind ;;
*) usage ;;
esac
[ $# -gt 1 ] || exit 0
[ $# -gt 2 ] || usage
tool=$1
build=$(cd "$2" && pwd -P) || exit 1
shift 2
logs=$build/sanitizer

# -- one item

# Writes a small data set of this kind and prints the options that read it. Batches are large enough for two threads.
data_of() {
    files="--data-dir . --trainpref train --validpref valid --testpref valid"
    case $1 in
    images)
        images 64 >train-images-idx3-ubyte && labels 64 >train-labels-idx1-ubyte || return 1
        images 9 >t10k-images-idx3-ubyte && labels 9 >t10k-labels-idx1-ubyte || return 1
        echo "--data idx --data-dir . --batch-size 16 --valid-images 8"
        return
        ;;
    pairs)
        lines '"w" i % 7 " x" i % 5 " y z"' 64 >train.de && cp train.de train.en || return 1
        head -n 8 train.de | tee valid.de >valid.en
        echo "--data parallel $files --source de --target en --max-tokens 300"
        return
        ;;
    sentences)
        lines 'i % 2 (i % 2 ? " good" : " bad") " film number" i % 7' 64 >train
        echo "--data labelled $files"
        ;;
    tags)
        lines '"Ann" i % 3 " I-PER\nsaw O\nRome I-LOC\nagain O\n"' 40 >train
        echo "--data conll $files --batch-size 20"
        ;;
    text)
        lines '"the cat " i % 7 " sat on the mat"' 200 >train
        echo "--data text $files --batch-size 16 --tgt-len 16 --eval-batch-size 1"
        ;;
    bytes)
        lines '"the cat " i % 7 " sat on the mat"' 200 >train
        echo "--data bytes --data-dir . --data-file train --batch-size 8 --tgt-len 32 --eval-tgt-len 16"
        ;;
    trees)
        lines '"1\ta\t_\tD\tD\t_\t2\tdet\t_\t_\n2\tcat" i % 3 "\t_\tN\tN\t_\t3\tsubj\t_\t_\n3\tsat\t_\tV\tV\t_\t0\troot\t_\t_\n"' 60 >train
        echo "--data trees $files --batch-size 100"
        ;;
    esac
    head -n 24 train >valid
}
# lines EXPRESSION N: the expression of awk for i from 0 to N - 1.
lines() { awk "BEGIN { for (i = 0; i < $2; i++) print $1 }"; }
# Files of MNIST's form with N images of 16 x 16 pixels.
word() { printf '%b' "$(printf '\\0%03o\\0%03o\\0%03o\\0%03o' 0 0 $(($1 / 256)) $(($1 % 256)))"; }
images() { word 2051 && word "$1" && word 16 && word 16 && bytes $((256 * $1)); }
labels() { word 2049 && word "$1" && bytes "$1"; }
bytes() { LC_ALL=C awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "%c", 1 + i % 9 }'; }

# train MODEL: trains it, and runs the computing commands on its files.
train() (
    work=$(mktemp -d) && cd "$work" || exit 1
    trap 'rm -rf "$work"' EXIT
    # shellcheck disable=SC2046 # a list of words
    set -- $(echo "$trainings" | awk -v model="$1" '$1 == model')
    model=$1
    data=$(data_of "$2") || return 1
    shift 2
    # shellcheck disable=SC2086 # a list of words
    $run "$build/bin/statrec" train --model "$model" "$@" $data --max-steps 3 --checkpoint-every 2 \
        --threads 2 -o run.h5 &&
        $run "$build/bin/statrec" resume run.h5 --max-steps 4 --threads 2 &&
        $run "$build/bin/statrec" evaluate run.h5 --threads 2 &&
        $run "$build/bin/statrec" check run.h5 &&
        $run "$build/bin/statrec" diagnose run.h5
)

# under_tool: how commands run, and where the tool writes its findings.
under_tool() {
    export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive
    suppressions=$top/tests/sanitizers.$tool
    case $tool in
    tsan)
        export OMP_TOOL_LIBRARIES="$archer" run=
        export TSAN_OPTIONS="ignore_noninstrumented_modules=1 suppressions=$suppressions log_path=$log.found exitcode=0"
        ;;
    memcheck)
        run="valgrind -q --fair-sched=yes --suppressions=$suppressions --log-file=$log.found.%p"
        ;;
    esac
}

# log_of ITEM: its files in BUILDDIR/sanitizer begin so.
log_of() { echo "$logs/$(echo "${1##*/tests/}" | tr / -)"; }

# item ITEM: runs it, unless it passed before; prints its line.
item() {
    log=$(log_of "$1") program=$build/bin/statrec
    [ -x "$1" ] && program=$1
    if [ -n "$(find "$log.passed" -newer "$program" 2>/dev/null)" ] || [ "$(date +%s)" -ge "$end" ]; then exit 0; fi
    rm -f "$log".*
    under_tool
    if [ -x "$1" ]; then $run "$1"; else train "$1"; fi >"$log.log" 2>&1 </dev/null
    status=$?
    find "$logs" -name "${log##*/}.found.*" -empty -exec rm {} +
    if [ $status -eq 0 ] && ! ls "$log".found.* >/dev/null 2>&1; then
        times >"$log.passed"
        echo "${log##*/}: passed, $(tail -n 1 "$log.passed" | cut -d ' ' -f 1) of a processor"
        exit 0
    fi
    echo "${log##*/}: FAILED, exit status $status; $log.*"
    tail -n 15 "$log.log"
    head -n 60 "$log".found.* 2>/dev/null
    exit 1
}

# -- all items

if [ "${1-}" = --item ]; then item "$2"; fi

minutes=55
if [ "${1-}" = --minutes ]; then minutes=$2 && shift 2; fi
end=$(($(date +%s) + 60 * minutes)) top=$(cd "$(dirname "$0")/.." && pwd -P)
export end top
mkdir -p "$logs" || exit 1
models=$(echo "$trainings" | awk 'NF { print $1 }')
# shellcheck disable=SC2046 # a list of words
set -- $(for item; do if [ "$item" = trainings ]; then echo "$models"; else echo "$item"; fi; done)
printf '%s\n' "$@" | xargs -P "${JOBS:-$(nproc)}" -I '{}' sh "$0" "$tool" "$build" --item '{}'
status=$?
passed=0
for item; do [ ! -e "$(log_of "$item").passed" ] || passed=$((passed + 1)); done
echo "$tool: $passed of $# programs and trainings passed"
[ $status -eq 0 ]
