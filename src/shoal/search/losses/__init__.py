"""Information loss of a recoding, for lattice nodes, cells and cuts."""
