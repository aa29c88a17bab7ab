"""How far stored numbers may be from what exact arithmetic would give: both phases once more, with error bounds."""
