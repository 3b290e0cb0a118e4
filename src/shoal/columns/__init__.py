"""What the columns of a table seem to be, and what they tell of each other."""
