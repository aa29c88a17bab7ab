"""Planning runs: how many states, how much memory, disk and time, before anything of that size is computed."""
