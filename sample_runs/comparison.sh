#!/bin/sh
# The runs behind docs/reproduction.md: vision against text, with the controls of each statement. An
# hour to a day of two cores in all, 2 GB. usage: comparison.sh BIN_DIRECTORY DATA_DIRECTORY OUT_DIRECTORY [NAME...]
# without names: all of them. A run that is there already is left alone.
set -eu
bin=$1 data=$2 out=$3
shift 3
wanted=" $* "

run() {
    name=$1
    shift
    case $wanted in "  " | *" $name "*) ;; *) return 0 ;; esac
    [ -e "$out/$name.h5" ] && return 0
    "$bin/statrec" train --final-tid --validate-batch "$@" -o "$out/$name.h5" >"$out/$name.tsv"
}
# ResNet20, 20,000 images, 3,140 updates, learning rate 0.1 with both drops. alpha 0.95 as in the text runs.
vision() {
    name=$1
    shift
    run "$name" --model resnet20 --norm bn --norm-alpha 0.95 --data cifar10 --data-dir "$data/cifar10" \
        --batch-size 128 --epochs 20 --lr 0.1 --lr-steps 10,15 "$@"
}
# Mini Transformer of d 128, 3 + 3 layers, 29,000 pairs, about 1,050 updates of 1,900 source words.
mini() {
    name=$1
    shift
    run "$name" --model transformer --preset mini --norm bn --data parallel --data-dir "$data/multi30k-de-en" \
        --testpref "" --max-tokens 2048 --vocab-size 8000 --epochs 5 "$@"
}
# d 512, 1 + 1 layers, pre-norm, BPE, 1,000 updates of 4,096 tokens.
wide() {
    name=$1
    shift
    run "$name" --model transformer --preset transformer_iwslt_de_en --placement pre --encoder-layers 1 \
        --decoder-layers 1 --norm bn --data parallel --data-dir "$data/iwslt14-de-en/bpe10k" \
        --trainpref train-subset --testpref "" --max-tokens 4096 --lr 0.0015 --warmup-updates 400 \
        --epochs 1000 --max-steps 1000 --final-batches 200 "$@"
}

mkdir -p "$out"
for seed in 1 2 3; do
    vision cv-he-$seed --seed $seed
    vision cv-py-$seed --seed $seed --init pytorch
    mini mini-bucketv-$seed --seed $seed --max-tokens-of valid
    mini mini-random-$seed --seed $seed --max-tokens-of valid --batching random
done
vision cv-noaug-1 --augment no
mini mini-bucket-1
mini mini-sorted-1 --max-tokens-of valid --batching sorted
mini mini-padbucket-1 --max-tokens-of valid --count-padding
mini mini-padrandom-1 --max-tokens-of valid --batching random --count-padding
mini mini-ln-1 --max-tokens-of valid --norm ln --observe batch
# The learning rate falls as in the vision runs.
mini mini-step-1 --max-tokens-of valid --batching random --lr-scheduler step --lr-steps 2.5,3.75 --lr-factor 0.1
mini mini-stepb-1 --max-tokens-of valid --lr-scheduler step --lr-steps 2.5,3.75 --lr-factor 0.1
# Nothing is learned: embeddings as they were drawn.
mini mini-zero-bucket --lr 0 --warmup-init-lr 0 --max-steps 600
mini mini-zero-random --lr 0 --warmup-init-lr 0 --max-steps 600 --max-tokens-of valid --batching random
mini mini-512-1 --max-tokens 512 --max-tokens-of valid --batching random --max-steps 600
vision cv-b32-1 --batch-size 32 --max-steps 600
for seed in 1 2; do
    wide t512-bucket-$seed --seed $seed
    wide t512-random-$seed --seed $seed --batching random
done
