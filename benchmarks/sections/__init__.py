"""What ``python -m benchmarks`` measures, a module each; see :data:`benchmarks.__main__.SECTIONS` for their order."""
