"""Look at an unknown table and propose a policy: roles, persons, dependencies, hierarchies, requirements."""
