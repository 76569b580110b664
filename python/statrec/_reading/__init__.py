"""Readers of run files: by libstatrec, or by h5py if libstatrec is missing."""
