"""The same work done by other tools, each optional: the model checkers SPIN and Storm."""
