"""The explorer: one HTML file to look through a run, with everything in it that it shows."""
