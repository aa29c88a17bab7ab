"""Benchmarks: ratios measured in one run, against peers and against the machine. ``python -m benchmarks --help``."""
