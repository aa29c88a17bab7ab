"""BushWorld: humans push through bushes of different densities, robots thin them out.

A second kind of compiled world, written against the seam alone (``map_world``), and the worked example of docs/own_world.md.
Reading order: ``spec`` (the file), ``packing`` (states as keys), ``rules`` (what happens in a step), ``looks`` (text and
picture), ``world`` (the object that users hold).
"""
