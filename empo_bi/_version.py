"""The version, written here only: ``pyproject.toml`` and ``empo_bi.__version__`` read it."""

__version__ = "0.2.0.dev0"
