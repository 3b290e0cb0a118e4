"""A local web page for the whole workflow; it calls the same functions as the command line."""
