"""The backward pass: kernels on blocks of states, the phases that use them, and the loop over levels."""
