#!/bin/sh
# usage: run.sh BUILD [ROUNDS]
# The performance figures of this project in one run: kernels first, then analyses and figures, then
# our training step and PyTorch's, round by round in turn, and the ratio of their medians. PyTorch is left out, visibly,
# where $PYTHON (default /usr/bin/python3) has none.
set -eu
bench=$1/bench
rounds=${2:-5}
python=${PYTHON:-/usr/bin/python3}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

median() {
    sort -n | awk '{v[NR] = $1} END {if (NR) print v[int((NR + 1) / 2)]}'
}

for kernel in bench_gemm bench_conv bench_norm bench_moments bench_ops bench_svd; do
    printf '# -- %s\n' $kernel
    "$bench/$kernel"
done

# programs on run files that they make in a temporary directory
for program in bench_analysis bench_figures; do
    printf '# -- %s\n' $program
    "$bench/$program" "$1/bin" "$rounds"
done

if "$python" -c 'import torch' 2>/dev/null; then peer=yes; else
    peer=no
    printf '# skipped: %s has no PyTorch\n' "$python"
fi
if [ $peer = yes ]; then
    printf '# -- recording a training step of PyTorch, 1 thread\n'
    PYTHONPATH=$here/../python STATREC_LIBRARY=$1/lib/libstatrec.so "$python" "$here/bench_watch.py" "$rounds" ||
        printf '# skipped: bench_watch.py wants numpy and h5py too\n'
fi
printf '# -- one training step, 2 threads, median of %s rounds in turn\nmodel\tstatrec_ms\trecording_ms\tpytorch_ms\tratio\n' "$rounds"
for model in resnet20 transformer; do
    : >"$work/ours" && : >"$work/recording" && : >"$work/torch"
    i=0
    while [ $i -lt "$rounds" ]; do
        "$bench/bench_step" $model 2 1 | sed -n 's/^# median: \(.*\) ms/\1/p' >>"$work/ours"
        "$bench/bench_step" $model 2 1 "$work/run.h5" | sed -n 's/^# median: \(.*\) ms/\1/p' >>"$work/recording"
        [ $peer = no ] ||
            "$python" "$here/bench_torch.py" $model --rounds 1 | awk '$1 == "torch" {print $3}' >>"$work/torch"
        i=$((i + 1))
    done
    ours=$(median <"$work/ours") torch=$(median <"$work/torch")
    printf '%s\t%s\t%s\t%s\t%s\n' $model "$ours" "$(median <"$work/recording")" "${torch:-nan}" \
        "$(awk -v a="$ours" -v b="${torch:-0}" 'BEGIN {print b > 0 ? sprintf("%.2f", a / b) : "nan"}')"
done
