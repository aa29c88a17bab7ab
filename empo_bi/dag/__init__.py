"""The levelled DAG: every state that can be reached, level by level, and what leads where."""
