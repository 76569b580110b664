statrec diagnose: cut\.h5: truncated: 3000 of [0-9]+ bytes
statrec diagnose: hint: copy the file again: what is left of a closed file cannot be recovered
