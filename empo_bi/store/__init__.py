"""Levels at rest: in memory, or as zarr groups in a folder, a zip file or anywhere else."""
