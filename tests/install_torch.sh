#!/bin/sh
# usage: install_torch.sh DIR [SECONDS]
# A Python environment in DIR with PyTorch, torchvision, timm, transformers, NumPy, h5py, nbclient and other packages of
# the Python tests, from the package index, within SECONDS (default 120). Exit status 1, and one line, if that fails:
# without network, without python3, too slow. An existing environment stays.
[ $# -ge 1 ] || { echo "usage: install_torch.sh DIR [SECONDS]" >&2; exit 2; }
dir=$1 seconds=${2:-120}
try='import torch, numpy, h5py'

"$dir/bin/python3" -c "$try" 2>/dev/null && { echo "torch: $dir has it"; exit 0; }
give_up() {
    echo "torch: not installed: $1; what needs it is skipped" >&2
    exit 1
}
python3 -m venv "$dir" >/dev/null 2>&1 || give_up "python3 cannot make an environment"
timeout --kill-after=5 "$seconds" "$dir/bin/python3" -m pip install --quiet --no-compile --disable-pip-version-check \
    torch torchvision timm transformers numpy h5py pandas xarray nbclient nbformat ipykernel bokeh panel selenium </dev/null >"$dir/pip.log" 2>&1 ||
    give_up "$(tail -n 1 "$dir/pip.log" | cut -c 1-200)"
"$dir/bin/python3" -c "$try" 2>/dev/null || give_up "it is there but cannot be imported"
"$dir/bin/python3" -c 'import torch; print("torch:", torch.__version__)'
