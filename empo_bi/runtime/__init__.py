"""What runs below the mathematics: compilation of kernels and, later, blocks, memory and progress."""
