#!/bin/sh
# usage: run.sh BUILD [ROUNDS]
# Measures this project's performance figures in one run: kernels first, then analyses and figures, then the lines of
# targets.py, which resumes after an interruption. Skips PyTorch, with a message, if $PYTHON (default /usr/bin/python3)
# lacks it.
set -eu
bench=$1/bench
rounds=${2:-5}
python=${PYTHON:-/usr/bin/python3}
here=$(dirname "$0")

for kernel in bench_gemm bench_conv bench_norm bench_moments bench_ops bench_svd; do
    printf '# -- %s\n' $kernel
    "$bench/$kernel"
done

# programs on run files that they make in a temporary directory
for program in bench_analysis bench_figures; do
    printf '# -- %s\n' $program
    "$bench/$program" "$1/bin" "$rounds"
done

if "$python" -c 'import torch' 2>/dev/null; then
    printf '# -- recording a training step of PyTorch, 1 thread\n'
    PYTHONPATH=$here/../python STATREC_LIBRARY=$1/lib/libstatrec.so "$python" "$here/bench_watch.py" "$rounds" ||
        printf '# skipped: bench_watch.py wants numpy and h5py too\n'
else
    printf '# skipped: %s has no PyTorch\n' "$python"
fi
printf '# -- training steps against PyTorch and other targets\n'
python3 "$here/targets.py" "$1" --python "$python"
