"""What the rows become before anything is searched: roles, codes, hierarchies, counts."""
