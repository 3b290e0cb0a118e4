"""Results on a terminal: aligned tables, colour only if it is a terminal, numbers with units."""
