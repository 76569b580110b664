"""Parts of statrec.audit and statrec.compare."""
