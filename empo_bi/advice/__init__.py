"""Advice about a problem before it is solved: what is probably not meant so, and what to do. :func:`empo_bi.advise`."""
