"""Sums on a GPU: kernels, one buffer for all sites, copies that nobody waits for."""
