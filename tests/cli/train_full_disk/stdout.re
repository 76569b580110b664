exit 1
statrec train: run.h5.part: .*: File too large
it stopped
exit 1
statrec train: warning: run.h5.part: .*: File too large; the run continues without it
statrec train: run.h5.part: .*: File too large
400 steps
