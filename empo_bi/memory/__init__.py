"""Memory: a limit that holds, a monitor that pauses, a planner, a profiler, and accounts of what is stored."""
