"""Values as text: JSON, TOML, readable figures, log lines, and the display of results."""
