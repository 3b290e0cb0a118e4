"""The bundled example: an invented hospital, an invented register of voters, and a policy."""
