#!/bin/sh
# usage: two_builds.sh BUILDDIR OTHER TOLERANCE [KIND...]
# Compares two builds, such as one for this processor and one in an emulator. Each trains a small model of every kind on
# the same files. Recorded values agree to TOLERANCE of the largest number of each dataset. Each build then reads the
# other's files: `statrec check`, stat-tid and `statrec evaluate` of a run file, a damaged run file, a copy and a
# checkpoint print the same. A run that one build began ends equally in both. A kind that passed does not run again
# until a program is newer (OTHER/runs/KIND.passed). Prints a line for each kind.
[ $# -ge 3 ] || { echo "usage: two_builds.sh BUILDDIR OTHER TOLERANCE [KIND...]" >&2; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd -P)
native=$(cd "$1" && pwd -P)/bin other=$(cd "$2" && pwd -P)/bin tolerance=$3
shift 3
wanted=" $* "
work=${other%/bin}/runs
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive STATREC_PRESETS="$top/share/presets" LC_ALL=C
for python in "${STATREC_PYTHON:-python3}" python3 /usr/bin/python3; do
    "$python" -c 'import h5py' 2>/dev/null && break
    python=
done
[ -n "$python" ] || { echo "two_builds: skipped: no python3 with h5py"; exit 0; }

#   kind        options
kinds='
    pairs       --model transformer --preset mini --embed-dim 16 --ffn-dim 16 --heads 2 --encoder-layers 1 --decoder-layers 1 --data parallel --data-dir . --source de --target en --trainpref pairs --validpref pairs --testpref none --max-tokens 128 --norm pn
    sentences   --model transformer_classifier --preset sst5 --embed-dim 8 --heads 2 --ffn-dim 8 --layers 1 --data-dir . --trainpref labelled --validpref labelled --testpref none --max-tokens 64 --norm bn
    tags        --model tener --preset conll2003-mini --embed-dim 16 --heads 2 --layers 1 --data conll --data-dir . --trainpref tags --validpref tags --testpref none --batch-size 2 --norm bn
    text        --model transformer_lm --preset ptb-mini --layers 1 --embed-dim 16 --ffn-dim 16 --heads 2 --lr-scheduler fixed --data-dir . --trainpref text --validpref text --testpref none --batch-size 8 --tgt-len 5 --norm rbn
    bytes       --model transformer_xl --preset enwik8-mini --layers 1 --embed-dim 16 --ffn-dim 16 --heads 2 --head-dim 4 --lr-scheduler fixed --data-dir . --data-file text --batch-size 4 --eval-batch-size 2 --tgt-len 8 --eval-tgt-len 5 --mem-len 12 --eval-mem-len 20 --norm ln --observe batch
    trees       --model mlp_parser --hidden-dim 32 --embed-dim 8 --batch-size 64 --data-dir . --trainpref trees --validpref trees --testpref none --norm bn
    images      --model mnist_cnn --data synth-images --limit 24 --batch-size 8 --norm bn
'

# The data sets, the same for both.
make_files() {
    awk 'BEGIN { for (i = 0; i < 120; i++) print i % 2 " " (i % 2 ? "good" : "bad") " film number" i % 7 " caf\303\251" }' >labelled
    awk 'BEGIN { for (i = 0; i < 300; i++) print "the cat " i % 7 " sat on the mat\n\na dog " i % 5 " and a <unk>" }' >text
    awk 'BEGIN { for (i = 0; i < 60; i++) print "a cat " i % 7 (i % 3 ? " sits" : "") }' >pairs.en
    awk 'BEGIN { for (i = 0; i < 60; i++) print "eine Katze " i % 7 (i % 3 ? " sitzt dort" : "") }' >pairs.de
    awk 'BEGIN { for (i = 0; i < 12; i++) print "Ann x x B-PER\nLee x x I-PER\nsaw x x O\n" (i % 3 ? "Rome" : "Paris") " x x B-LOC\n" }' >tags
    awk 'function word(form, pos, head, label) { print ++n "\t" form "\t_\t" pos "\t" pos "\t_\t" head "\t" label "\t_\t_" }
        BEGIN { for (i = 0; i < 60; i++) {
            n = 0; a = i % 3 == 0
            word("the", "DT", 2 + a, "det"); if (a) word("old", "JJ", 3, "amod")
            word("cat", "NN", 3 + a, "nsubj"); word(i % 5 ? "saw" : "bit", "VBD", 0, "root")
            word("dog", "NN", 3 + a, "obj"); print "" } }' >trees
}

# fault TEXT [FILE]
fault() {
    echo "$kind: $1"
    [ $# -lt 2 ] || sed 's/^/    /' "$2"
    bad=1
}

# same COMMAND...: both builds print the same and end alike, with the programs of its bin/.
same() {
    env PATH="$native:$PATH" "$@" >native.out 2>&1; echo "exit $?" >>native.out
    env PATH="$other:$PATH" "$@" >other.out 2>&1; echo "exit $?" >>other.out
    comparisons=$((comparisons + 1))
    diff native.out other.out >diff.out || fault "$* differs (native <, other >)" diff.out
}

# passes COMMAND..., refuses COMMAND...: the same, and exit status 0 or 1.
passes() {
    same "$@"
    grep -qx 'exit 0' other.out || fault "$* fails" other.out
}

refuses() {
    same "$@"
    grep -qx 'exit 1' other.out || fault "$* finds nothing" other.out
}

# near A B: the numbers of two run files.
near() {
    comparisons=$((comparisons + 1))
    "$python" "$top/tests/compare_runs.py" "$1" "$2" "$tolerance" >near.out 2>&1 || fault "$1 and $2 differ" near.out
}

# train BIN NAME OPTIONS...
train() {
    bin=$1 name=$2
    shift 2
    # shellcheck disable=SC2086 # a list of words
    "$bin/statrec" train $options --threads 1 --quiet --force --seed 5 --checkpoint-every 3 \
        --validate-interval-updates 3 -o "$name.h5" "$@" >"$name.out" 2>&1 ||
        { fault "statrec train of $name fails" "$name.out"; return 1; }
}

# Losses of `statrec evaluate`, to five digits.
loss_of() {
    "$1/statrec" evaluate "$2" --threads 1 --quiet 2>&1 | awk -F '\t' '{ for (i = 1; i <= NF; i++) if ($i ~ /^-?[0-9.]+(e[-+][0-9]+)?$/) $i = sprintf("%.5g", $i); print }'
}

# exchange WRITER: both builds read the files of this one.
exchange() {
    passes statrec check "$1.h5"
    passes statrec info "$1.h5"
    passes stat-tid "$1.h5"
    passes stat-scalar "$1.h5"
    head -c "$(($(wc -c <"$1.h5") * 2 / 3))" "$1.h5" >cut.h5
    refuses statrec check cut.h5
    { head -c 4000 "$1.h5"; printf '\377\0\377'; tail -c +4004 "$1.h5"; } >flipped.h5
    refuses statrec check flipped.h5
    passes statrec check "$1-0000003.ckpt"
    loss_of "$native" "$1-0000003.ckpt" >native.loss
    loss_of "$other" "$1-0000003.ckpt" >other.loss
    comparisons=$((comparisons + 1))
    diff native.loss other.loss >diff.out || fault "statrec evaluate $1-0000003.ckpt differs (native <, other >)" diff.out
}

# The first three updates of one build, the others of the other one.
go_on() {
    train "$native" begun --max-steps 3
    "$other/statrec" resume begun.h5 --max-steps 6 --quiet >resumed.out 2>&1 || fault "statrec resume fails" resumed.out
    near native.h5 begun.h5
    "$native/statrec" copy begun.h5 -o copied.h5 >copied.out 2>&1 || fault "statrec copy fails" copied.out
    passes statrec check copied.h5
}

one_kind() {
    bad=0 comparisons=0
    rm -rf "${work:?}/$kind"
    mkdir -p "$work/$kind" && cd "$work/$kind" || exit 1
    make_files
    train "$native" native --max-steps 6 && train "$other" other --max-steps 6 && {
        near native.h5 other.h5
        exchange native
        exchange other
        go_on
    }
    cd "$work" || exit 1
    [ $bad -eq 0 ] && echo "$kind: $comparisons comparisons" >"$kind.passed"
}

mkdir -p "$work" && cd "$work" || exit 1
status=0
while read -r kind options; do
    [ -n "$kind" ] || continue
    case $wanted in "  " | *" $kind "*) ;; *) continue ;; esac
    [ "$(find "$kind.passed" -newer "$other/statrec" -newer "$native/statrec" 2>/dev/null)" ] ||
        one_kind </dev/null || { status=1; continue; }
    cat "$kind.passed"
done <<END
$kinds
END
exit $status
