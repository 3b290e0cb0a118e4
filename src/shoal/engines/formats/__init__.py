"""Reading tables from files, and writing releases to files."""
