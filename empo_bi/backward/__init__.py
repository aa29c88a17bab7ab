"""Backward induction: goals as columns, profiles as indices, kernels on blocks of states, and the sweep over levels."""
