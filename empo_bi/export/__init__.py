"""DAGs as files for model checkers: Storm's DRN, which is text, and UMB, an archive of plain arrays."""
