#!/bin/sh
# The runs of every task of the papers on two cores, with LN and with BN: one command each, behind the
# table of docs/reproduction.md. usage: tasks.sh BIN_DIRECTORY DATA_DIRECTORY OUT_DIRECTORY [NAME...];
# without names: all of them. A run that is there already is left alone, one that was stopped goes on.
set -eu
bin=$1 data=$2 out=$3
shift 3
wanted=" $* "

# NAME NORM METRIC OPTIONS: the checkpoint of the best METRIC on the validation set is evaluated on the test set
run() {
    name=$1-$2 norm=$2 metric=$3
    shift 3
    case $wanted in "  " | *" $name "*) ;; *) return 0 ;; esac
    [ -e "$out/$name.h5" ] && return 0
    if [ -e "$out/$name.h5.part" ]; then
        "$bin/statrec" resume "$out/$name.h5" >>"$out/$name.tsv"
    else
        "$bin/statrec" train --test --final-tid --final-batches 100 --record-sites first,last \
            --checkpoint-every 1e --keep-best "$metric" --norm "$norm" "$@" -o "$out/$name.h5" >"$out/$name.tsv"
    fi
    "$bin/statrec" evaluate "$out/$name-best.ckpt" --split test --bleu off >"$out/$name-test.tsv"
}
# Those that fit their small training sets long before the last epoch.
early() {
    run "$@" --patience 5 --patience-metric valid_accuracy
}

mkdir -p "$out"
for norm in ln bn; do
    run mnist "$norm" valid_accuracy --model mnist_cnn --data-dir "$data/mnist"
    early rt "$norm" valid_accuracy --model transformer_classifier --preset rt --data-dir "$data/rt-polarity"
    early sst5 "$norm" valid_accuracy --model transformer_classifier --preset sst5 --data-dir "$data/sst5"
    early imdb "$norm" valid_accuracy --model transformer_classifier --preset imdb-mini --data-dir "$data/imdb"
    run ptb-parsing "$norm" valid_uas_nopunct --model mlp_parser --preset ptb-sample --data-dir "$data/ptb-dependency-sample"
    run ud-parsing "$norm" valid_uas_nopunct --model mlp_parser --preset ud-ewt --data-dir "$data/ud-english-ewt"
    run conll2003 "$norm" valid_f1 --model tener --preset conll2003-mini --data-dir "$data/conll2003"
    run enwik8 "$norm" valid_bpc --model transformer_xl --preset enwik8-mini --data-file enwik8.first4000000 \
        --data-dir "$data/enwik8-prefix"
    run cifar10 "$norm" valid_accuracy --model resnet18 --preset mini --data cifar10 --valid-images 2000 --data-dir "$data/cifar10"
done
