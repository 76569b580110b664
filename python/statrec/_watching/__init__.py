"""statrec.watch at a layer: hooks, sums, passes of a step, rows of the file."""
