"""Many runs in one command: worlds, horizons, parameters; resumable, in parallel, with a table at the end."""
