#!/bin/sh
# usage: wheel.sh DIRECTORY
# STATREC_PYTHON names a Python with torch, for the code of docs/use-a-norm-in-pytorch.md. Installs the wheels of
# DIRECTORY (`make wheel wheel-pure`) into new virtual environments and uses them with an empty environment. Checks the
# size, the exports of libstatrec, the libraries that programs and libraries load, and each program. Checks recording,
# reading, figures, h5py imported before and after, and the pure wheel, which reads with h5py. Prints one line, or one
# per fault.
[ $# -eq 1 ] || { echo "usage: wheel.sh DIRECTORY" >&2; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
wheels=$(cd "$1" && pwd -P) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
bad=0 looked=0
cp "$top/sample_runs/nlp_bn.h5" "$work"
cd "$work" || exit 1

fault() {
    echo "wheel: $*"
    bad=$((bad + 1))
}

# check TEXT COMMAND...: the command must succeed in an empty environment; else prints TEXT and the end of its output.
check() {
    what=$1
    shift
    looked=$((looked + 1))
    env -i PATH="$bin:/usr/bin:/bin" HOME="$work" "$@" >"$work/said" 2>&1 && return 0
    fault "$what"
    tail -n 20 "$work/said"
    return 1
}

skip() { echo "wheel: skipped: $*"; }

# environment NAME WHEEL...: a new one, current from now on.
environment() {
    bin=$work/$1/bin
    check "python3 -m venv" python3 -m venv "$work/$1" || exit 1
    shift
    check "pip install $*" pip -q install --no-index "$@" || exit 1
}

# The libraries that a file of the wheel may want from the system.
check_needs() {
    site=$(echo "$work"/binary/lib/python3*/site-packages)
    size=$(wc -c <"$(echo "$wheels"/statrec-*linux_*.whl)")
    looked=$((looked + 3))
    [ "$size" -le 60000000 ] || fault "$size bytes, more than 60 MB"
    nm -D --defined-only "$site/statrec/_tree/lib/libstatrec.so.1" | awk '$NF !~ /^sr_/' >"$work/exports"
    [ ! -s "$work/exports" ] || fault "libstatrec exports $(wc -l <"$work/exports") names that are not sr_*"
    for file in "$site"/statrec/_tree/bin/* "$site/statrec/_tree/lib/libstatrec.so.1"; do
        env -i ldd "$file" | awk '{ print $1, $3 }'
    done | grep -vE "^(linux-vdso|/lib|lib(m|c|z|gcc_s|stdc\+\+|dl|pthread|rt)\.so)|$work" | sort -u >"$work/needs"
    [ ! -s "$work/needs" ] || fault "needs of the system: $(tr '\n' ' ' <"$work/needs")"
    for name in curl krb5 ldap gnutls gssapi ssh; do
        for file in "$site"/statrec.libs/*"$name"*; do
            [ ! -e "$file" ] || fault "has $(basename "$file")"
        done
    done
}

check_programs() {
    for program in "$site"/statrec/_tree/bin/*; do
        name=$(basename "$program")
        check "$name --help" "$bin/$name" --help
    done
    check "statrec train" sh -c "statrec train -c '$top/sample_runs/demo_cv.conf' --help"
    check "statrec info" "$bin/statrec" info nlp_bn.h5
    check "stat-scalar" "$bin/stat-tid" nlp_bn.h5
    if command -v gnuplot >/dev/null; then check "statplot" "$bin/statplot" overview nlp_bn.h5 -o overview.svg
    else skip "statplot: gnuplot is not installed"; fi
}

cat >"$work/record.py" <<'PY'
import sys
order = sys.argv[1]
if order == "before":
    import h5py
import statrec
with statrec.Recorder(order + ".h5", program="tests") as recorder:
    site = recorder.add_site("norm1", norm="bn", kind="encoder", width=3, eps=1e-5, alpha=0.9)
    for step in range(1, 6):
        recorder.begin_step(step)
        recorder.put_vector(site, "mu_B", [step, 2.0, 3.0])
        recorder.end_step(update=step, tokens=1, loss=1.0)
    if order != "alone":
        import h5py
        with h5py.File("other.h5", "w") as other:
            other["x"] = [1.0, 2.0]
assert not statrec.check(order + ".h5"), statrec.check(order + ".h5")
with statrec.open(order + ".h5") as run:
    assert [row[0] for row in run.vector("mu_B")] == [1, 2, 3, 4, 5]
    assert run._reader.__module__ == "statrec._reading._native_reader"
    assert statrec.table("stat-tid", "nlp_bn.h5")["rows"]
if order != "alone":
    with h5py.File(order + ".h5", "r") as file:
        assert file["vectors/mu_B"][2, 0] == 3.0
        with statrec.open("nlp_bn.h5") as run:
            assert run.info["steps"] == 240
PY
cat >"$work/pure.py" <<'PY'
import statrec
with statrec.open("nlp_bn.h5") as run:
    assert run._reader.__module__ == "statrec._reading._h5py_reader", run._reader
    assert run.info["steps"] == 240 and run.vector("mu_B").shape == (run.info["vectors"], run.info["width"])
try:
    statrec.Recorder("x.h5", program="tests")
except statrec.Error as why:
    assert "libstatrec does not load" in str(why), why
else:
    raise SystemExit("records without a library")
PY

cat >"$work/page.py" <<'PY'
import re, sys
blocks = re.findall(r"^```python\n(.*?)^```$", open(sys.argv[1], encoding="utf-8").read(), re.M | re.S)
names = {}
for block in blocks:
    exec(block, names)
import statrec, statrec.models, statrec.nn
for part in (statrec, statrec.models, statrec.nn):
    assert part.__file__.startswith(sys.argv[2]), part.__file__
assert len(blocks) > 4 and statrec.open("norms.h5").info["steps"] == 1
PY

# The page's code, as printed, with the package of the wheel and the torch of another Python.
check_page() {
    python=$(command -v "${STATREC_PYTHON:-python3}")
    "$python" -c 'import torch, h5py' 2>/dev/null || { skip "docs/use-a-norm-in-pytorch.md: $python has no torch"; return; }
    check "pip install --target" "$python" -m pip -q install --no-index --no-deps --target "$work/page" \
        "$wheels"/statrec-*linux_*.whl &&
        check "docs/use-a-norm-in-pytorch.md" env PYTHONPATH="$work/page" "$python" page.py \
            "$top/docs/use-a-norm-in-pytorch.md" "$work/page"
}

environment binary "$wheels"/statrec-*linux_*.whl
check_needs
check_programs
check "recording" python record.py alone
check_page
if "$bin/pip" -q --disable-pip-version-check install h5py >"$work/said" 2>&1; then
    check "h5py imported before" python record.py before
    check "h5py imported after" python record.py after
    environment pure "$wheels"/statrec-*-any.whl
    check "pip install h5py" pip -q install h5py && check "the pure wheel" python pure.py
else
    skip "h5py before, after and alone: pip cannot install it"
fi
[ $bad -eq 0 ] || exit 1
echo "wheel: $looked checks of both wheels passed"
