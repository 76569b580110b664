#!/usr/bin/env bash
# usage: check_completion.sh BUILDDIR
# Completes command lines as bash does, with the file from `make completion`, and compares the
# words. Prints one line, or one line per fault.
[ $# -eq 1 ] || { echo "usage: check_completion.sh BUILDDIR" >&2; exit 2; }
build=$(cd "$1" && pwd -P) || exit 1
# shellcheck disable=SC1091 # written by make completion
. "$build/completions/statrec" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir runs && touch cv.h5 nlp.h5.part cv-100.ckpt notes.txt 'two words.h5'
bad=0 looked=0

fault() {
    echo "completion: $*"
    bad=$((bad + 1))
}

# offers LINE: prints the completions at the end of LINE, sorted, on one line. Like readline, splits
# words at = too.
offers() {
    local line=$1 text
    text=${line//=/ = }
    read -r -a COMP_WORDS <<<"$text"
    case $line in *[\ =]) [ "${line: -1}" = = ] || COMP_WORDS+=('') ;; esac
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    "$(complete -p "${COMP_WORDS[0]}" 2>/dev/null | sed 's/.*-F \([^ ]*\) .*/\1/')"
    printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort -u | paste -sd ' '
}

# is LINE WORDS: the completions are exactly WORDS.
is() {
    looked=$((looked + 1))
    local got
    got=$(offers "$1")
    [ "$got" = "$2" ] || fault "'$1' : got '$got', want '$2'"
}

# has LINE WORD...: the completions include each WORD.
has() {
    local line=$1 got word
    got=" $(offers "$line") "
    shift
    for word in "$@"; do
        looked=$((looked + 1))
        case $got in *" $word "*) ;; *) fault "'$line' does not offer $word, but$got" ;; esac
    done
}

is 'statrec tr' 'train translate'
is 'statrec help re' 'recover resume'
has 'statrec ' dictionary data list bpe help
is 'statrec data ru' 'runs'
is 'statrec data --wo' '--word-vectors'
is 'statrec data --word-vectors no' 'notes.txt'
is 'statrec train --labels ' 'first single'
is 'statrec score ' 'bleu conll dep multi-bleu'
is 'statrec score b' 'bleu'
is 'statrec bpe ' 'apply learn vocab'
is 'statrec bpe learn --sy' '--symbols'
is 'statrec list no' 'norms'
is 'statrec list norms --format ' 'csv json tsv'
is 'statrec list sites --mod' '--model'
is 'statrec list sites --model resnet1' 'resnet18'
is 'statrec train --model resnet1' 'resnet18'
is 'statrec train --model=resnet1' 'resnet18'
is 'statrec train --mod' '--model'
has 'statrec train --norm ' bn pn rbn ln none
has 'statrec train --norm=' bn pn rbn ln none
is 'statrec train --decoder-norm ln-' 'ln-simple'
is 'statrec train --data synth-' 'synth-images synth-pairs'
is 'statrec train --preset enwik8-' 'enwik8-mini'
is 'statrec train --lr-steps-in ' 'epochs updates'
is 'statrec train --qui' '--quiet'
is 'statrec train --no-qui' '--no-quiet'
is 'statrec train --no-mod' ''
is 'statrec train --keep-best valid_p' 'valid_ppl valid_ppl_batch valid_precision valid_precision_batch'
is 'statrec train --seed ' ''
is 'statrec train -o ' 'cv.h5 nlp.h5.part runs two words.h5'
is 'statrec train --data-dir ' 'runs'
is 'statrec train -c n' 'nlp.h5.part notes.txt'
is 'statrec info ' 'cv-100.ckpt cv.h5 nlp.h5.part runs two words.h5'
is 'statrec info n' 'nlp.h5.part'
is 'statrec average ' 'cv-100.ckpt runs'
is 'statrec export cv.h5 --stat dist_mu,mu' 'dist_mu,mu dist_mu,mu_B dist_mu,mu_apart dist_mu,mu_moved'
is 'statrec evaluate cv.h5 --split t' 'test train'
is 'statrec score bleu --ref no' 'notes.txt'
is 'stat-tid ' 'cv.h5 nlp.h5.part runs two words.h5'
is 'stat-tid cv.h5 --stat ' 'mean total var'
is 'stat-tid cv.h5 --stat mean,v' 'mean,var'
is 'stat-tid cv.h5 --site la' 'last last-bn'
is 'stat-tid --definition ' 'paper released'
is 'stat-compare --stat g_mu_s' 'g_mu_share g_mu_sum'
is 'stat-table --layout rbn-v' 'rbn-variants'
is 'stat-table --published-table pn-i' 'pn-iwslt14'
is 'statplot results --published-table pn-ptb,pn-i' 'pn-ptb,pn-iwslt14'
has 'stat-svd --' --all --summary --format --help --version
is 'statplot fig' 'fig2 fig3 fig4 fig5 fig6 fig7'
has 'statplot ' fig2 report list pn-table1 tid
is 'statplot fig2 ' 'cv.h5 nlp.h5.part runs two words.h5'
is 'statplot fig2 --form ' 'paper per-root relative'
is 'statplot fig2 cv.h5 -o no' 'notes.txt'
# every program completes --help
for path in "$build"/bin/*; do has "$(basename "$path") --he" --help; done

[ $bad -eq 0 ] || exit 1
echo "completion: $looked checks passed"
