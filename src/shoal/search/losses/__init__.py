"""What a recoding costs: for nodes of the lattice, for cells, for cuts."""
