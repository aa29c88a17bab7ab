"""The documented functions with their many switches, return shapes and side effects; nothing else knows of these."""

from empo_bi.compat.archives import archive_value_slices, detect_archivable_levels, load_archived_value_slices
from empo_bi.compat.documented import compute_human_policy_prior, compute_robot_policy
from empo_bi.results.chain import compute_markov_chain_value_function

__all__ = [
    "archive_value_slices",
    "compute_human_policy_prior",
    "compute_markov_chain_value_function",
    "compute_robot_policy",
    "detect_archivable_levels",
    "load_archived_value_slices",
]
