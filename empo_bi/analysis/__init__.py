"""Looking at solutions: labelled arrays, tables, maps, pictures."""
