"""What a solve leaves: values by level, policies, the Markov chain they make, and the solution that has them all."""
