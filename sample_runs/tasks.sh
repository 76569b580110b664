#!/bin/sh
# The runs of every task of the papers on two cores, with LN and with BN: one command each, behind the
# table of docs/reproduction.md. usage: tasks.sh BIN_DIRECTORY DATA_DIRECTORY OUT_DIRECTORY [NAME...];
# without names: all of them. A run that is there already is left alone, one that was stopped goes on.
set -eu
bin=$1 data=$2 out=$3
shift 3
wanted=" $* "

run() {
    name=$1 norm=$2
    shift 2
    case $wanted in "  " | *" $name-$norm "*) ;; *) return 0 ;; esac
    [ -e "$out/$name-$norm.h5" ] && return 0
    if [ -e "$out/$name-$norm.h5.part" ]; then
        "$bin/statrec" resume "$out/$name-$norm.h5" >>"$out/$name-$norm.tsv"
    else
        "$bin/statrec" train --test --final-tid --final-batches 100 --record-sites first,last \
            --checkpoint-every 1e --norm "$norm" "$@" -o "$out/$name-$norm.h5" >"$out/$name-$norm.tsv"
    fi
}

mkdir -p "$out"
for norm in ln bn; do
    run mnist "$norm" --model mnist_cnn --data-dir "$data/mnist" --keep-best valid_accuracy
    run rt "$norm" --model transformer_classifier --preset rt --data-dir "$data/rt-polarity"
    run sst5 "$norm" --model transformer_classifier --preset sst5 --data-dir "$data/sst5"
    run imdb "$norm" --model transformer_classifier --preset imdb-mini --data-dir "$data/imdb"
    run ptb-parsing "$norm" --model mlp_parser --preset ptb-sample --data-dir "$data/ptb-dependency-sample"
    run ud-parsing "$norm" --model mlp_parser --preset ud-ewt --data-dir "$data/ud-english-ewt"
    run conll2003 "$norm" --model tener --preset conll2003-mini --data-dir "$data/conll2003"
    run enwik8 "$norm" --model transformer_xl --preset enwik8-mini --data-file enwik8.first4000000 \
        --data-dir "$data/enwik8-prefix"
    run cifar10 "$norm" --model resnet18 --preset mini --data cifar10 --valid-images 2000 --data-dir "$data/cifar10"
done
