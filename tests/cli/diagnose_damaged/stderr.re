statrec diagnose: cut\.h5: truncated: 3000 of at least [0-9]+ bytes
statrec diagnose: hint: copy the file again: truncated closed files cannot be recovered
