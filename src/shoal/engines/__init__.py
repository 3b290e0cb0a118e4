"""Where rows live: files, frames and databases."""
