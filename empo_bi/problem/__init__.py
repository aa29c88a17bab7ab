"""What is to be solved: the parameters of the theory, goals as columns, who plays what, and users' callbacks."""
