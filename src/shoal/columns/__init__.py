"""What the columns of a table mean, and which columns reveal others."""
