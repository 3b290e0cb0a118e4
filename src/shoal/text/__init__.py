"""Values as text: JSON, TOML, figures as people read them, log lines, and showing results."""
