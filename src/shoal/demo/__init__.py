"""The bundled example: a fictitious hospital, a fictitious voter register, and policies."""
