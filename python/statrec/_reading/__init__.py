"""Readers of run files: by libstatrec, or by h5py where it is missing."""
