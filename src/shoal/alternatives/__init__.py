"""What other requirements, algorithms and limits would give."""
