"""Sums on a GPU: kernels, one buffer for all sites, asynchronous copies."""
