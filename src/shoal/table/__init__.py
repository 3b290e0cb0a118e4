"""What rows are converted to before a search: codes, hierarchies and counts."""
