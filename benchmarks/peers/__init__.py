"""Other tools at the same work; each is optional (``pip install 'empo-bi[peers]'``)."""
