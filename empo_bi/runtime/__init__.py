"""What runs below the mathematics: compiled kernels, workers, progress, interrupts, safe files, what the machine has."""
