"""One file per screen: what it shows, and what its forms do."""
