"""The pipeline: enumerate a world, solve it, open what was solved. The room is not called ``solve``: the function is."""
