"""Look at an unknown table, and propose a policy for it."""
