"""The report of a release: HTML pages, charts and notebook output."""
