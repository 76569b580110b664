#!/bin/sh
# usage: levels.sh PREFIX
# Checks the instruction levels of a tree that make install made. The levels above x86-64-v2 have the same libraries
# (KERNELS of the Makefile). Files for all processors have no instruction above x86-64-v2; each higher level has some.
# The loader takes the kernels of the best level that this processor has, and of each lower one if the processor seems
# to have no more. A training run has the same loss with each, but for rounding. Prints one line, or one line per fault.
[ $# -eq 1 ] || { echo "usage: levels.sh PREFIX" >&2; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
prefix=$(cd "$1" && pwd -P) || exit 1
statrec=$prefix/bin/statrec private=$prefix/lib/statrec
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
bad=0 runs=0
export LC_ALL=C
unset LD_LIBRARY_PATH GLIBC_TUNABLES

fault() {
    echo "levels: $*"
    bad=$((bad + 1))
}

# place LEVEL: where its libraries are.
place() {
    case $1 in
    x86-64-v2) echo "$private" ;;
    *) echo "$private/glibc-hwcaps/$1" ;;
    esac
}

# uses PATTERN FILE: whether it has instructions like that.
uses() {
    objdump -d --no-show-raw-insn "$2" | grep -E "$1" >"$work/found"
    [ -s "$work/found" ]
}

# shellcheck disable=SC1091
. "$top/tests/cli/small.sh"

# -- contents of the files

# AVX registers, instructions in its encoding, and instructions of BMI, LZCNT and MOVBE
above_v2='%[yz]mm|	v[a-z0-9]+ .*%xmm|	(andn|bextr|bls[a-z]+|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|tzcnt|movbe)[lq]? '
above_v3='%zmm|%[xy]mm(1[6-9]|2[0-9]|3[01])|%k[0-7]'

none_above() {
    pattern=$1 level=$2
    shift 2
    for file in "$@"; do
        uses "$pattern" "$file" && fault "$(basename "$file") is above $level:$(sed 1q "$work/found")"
    done
}

check_files() {
    kernels=$(cd "$(place x86-64-v3)" && ls -- *.so)
    [ "$kernels" = "$(cd "$(place x86-64-v4)" && ls -- *.so)" ] || fault "x86-64-v3 and x86-64-v4 have different libraries"
    for name in $kernels; do [ -f "$private/$name" ] || fault "x86-64-v2 has no $name"; done
    none_above "$above_v2" x86-64-v2 "$prefix"/bin/* "$private"/*.so "$prefix"/lib/libstatrec.so "$prefix"/lib/libstatrec.a
    none_above "$above_v3" x86-64-v3 "$(place x86-64-v3)"/*.so
    for module in engine-ops norm-kernels; do
        uses '%ymm' "$(place x86-64-v3)/libstatrec-$module.so" || fault "$module of x86-64-v3 has nothing of it"
        uses '%zmm' "$(place x86-64-v4)/libstatrec-$module.so" || fault "$module of x86-64-v4 has nothing of it"
    done
}

# -- loaded libraries and their results

# taken PLACE COMMAND...: in the list of libraries that COMMAND prints, ours must come from PLACE if it has them, else
# from the folder for all processors.
taken() {
    from=$1
    shift
    "$@" | sed -n 's|.*libstatrec-[a-z-]*\.so => \(.*\) (0x.*|\1|p' >"$work/taken"
    [ -s "$work/taken" ] || fault "the program has no libraries of ours"
    while read -r path; do
        name=$(basename "$path") got=$(cd "$(dirname "$path")" && pwd -P)
        if [ -f "$from/$name" ]; then wanted=$from; else wanted=$private; fi
        [ "$got" = "$wanted" ] || fault "$name is taken from $got, not $wanted"
    done <"$work/taken"
}

# loss COMMAND...: the last training loss of a small run.
loss() {
    # shellcheck disable=SC2086,SC2154 # a list of words, of small.sh
    "$@" train $small --max-steps 4 -o "$work/run.h5" >"$work/out" 2>&1 || { sed 3q "$work/out" >&2; echo none; return; }
    grep '^[0-9]' "$work/out" | tail -n 1 | cut -f 3
    rm -f "$work/run.h5"
}

# without LEVEL: what hides that level's instructions from the loader. It holds for programs that start themselves again.
without() {
    case $1 in
    x86-64-v2) echo glibc.cpu.hwcaps=-AVX512F,-AVX2 ;;
    x86-64-v3) echo glibc.cpu.hwcaps=-AVX512F ;;
    *) echo glibc.cpu.hwcaps= ;;
    esac
}

check_level() {
    level=$1
    tunables=GLIBC_TUNABLES=$(without "$level")
    taken "$(place "$level")" env "$tunables" "$loader" --list "$statrec"
    got=$(loss env "$tunables" "$statrec")
    echo "$got $want" | awk '{ d = $1 - $2; exit !($1 > 0 && d * d <= 1e-8 * $2 * $2) }' ||
        fault "$level comes to a loss of $got, the best level to $want"
    runs=$((runs + 1))
}

check_runs() {
    loader=$(readelf -l "$statrec" | sed -n 's/.*interpreter: \(.*\)]/\1/p')
    has=$("$loader" --help | sed -n 's/^ *\(x86-64-v[234]\) (supported.*/\1/p' | sort)
    taken "$(place "$(echo "$has" | tail -n 1)")" "$loader" --list "$statrec"
    want=$(loss "$statrec")
    for level in $has; do check_level "$level"; done
    [ $runs -gt 0 ] || fault "no level of this processor was run"
}

check_files
check_runs
[ $bad -eq 0 ] || exit 1
echo "levels: the best of $runs is taken, each runs and keeps to its instructions"
