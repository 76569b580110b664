#!/bin/sh
# The runs behind the result tables of docs/reproduction.md, from raw text to BLEU and perplexity: one
# command each. A quarter of an hour or so each on two cores. usage: tables.sh BIN_DIRECTORY DATA_DIRECTORY
# OUT_DIRECTORY [NAME...]; without names: all of them. A run that is there already is left alone, one that
# was stopped goes on.
set -eu
bin=$1 data=$2 out=$3
shift 3
wanted=" $* "

run() {
    name=$1
    shift
    case $wanted in "  " | *" $name "*) ;; *) return 0 ;; esac
    [ -e "$out/$name.h5" ] && return 0
    if [ -e "$out/$name.h5.part" ]; then
        "$bin/statrec" resume "$out/$name.h5" >>"$out/$name.tsv"
    else
        "$bin/statrec" train --test --final-tid --final-batches 100 "$@" -o "$out/$name.h5" >"$out/$name.tsv"
    fi
}
# Mini Transformer, d 128, 3 + 3 layers, 6,000 merges learnt from the training text, 10 epochs.
multi30k() {
    run "multi30k-$1" --model transformer --preset mini --data parallel --data-dir "$data/multi30k-de-en" \
        --bpe-merges 6000 --testpref test_2016_flickr --epochs 10 --norm "$1" --checkpoint-every 1e --keep 5 \
        --bleu-every 5
}
# The same model; merges of the data's own `code`.
iwslt() {
    run "iwslt14-$1" --model transformer --preset mini --data parallel --data-dir "$data/iwslt14-de-en" \
        --trainpref bpe10k/train-subset --validpref bpe10k/valid --testpref bpe10k/test --epochs 10 --norm "$1" --checkpoint-every 1e --bleu-every 10 \
        --record-sites first,last
}
# d 192; text as people write it, tokenized and in small letters here.
tatoeba() {
    run "tatoeba-$1" --model transformer --preset mini --embed-dim 192 --ffn-dim 384 --data tabbed \
        --data-dir "$data/tatoeba-de-en" --tokenize 13a --lowercase --bpe-merges 6000 --max-tokens 4096 \
        --max-steps 1000 --validate-interval-updates 500 --norm "$1" --checkpoint-every 250 --bleu-every 2 \
        --record-sites first,last
}
# Tensorized transformer, core-1: every normalization of the model, the mask as told.
language() {
    run "$1-$2-$3" --model tensorized --preset "$4" --data-dir "$data/$1" --norm "$2" --lm-mask "$3" \
        --record-sites first,last --vectors-every 0 --validate-interval-updates 1000 --checkpoint-every 500
}

mkdir -p "$out"
for norm in ln bn; do
    multi30k $norm
    iwslt $norm
    tatoeba $norm
    for mask in causal released; do
        language ptb $norm $mask ptb-mini
        language wikitext-2 $norm $mask wikitext-2
    done
done
