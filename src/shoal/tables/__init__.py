"""The frequency table, its codes and domain."""
