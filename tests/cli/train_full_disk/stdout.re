exit 1
statrec train: run.h5.part: .*: File too large
