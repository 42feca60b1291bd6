"""Array code: pure functions on JAX arrays, no labels, no files, no global state."""
