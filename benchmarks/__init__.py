"""Measuring the engine: what it costs, how that grows, and how others do on the same work."""
