"""Local recoding: classes are recoded one by one, and improved by dissolving and rebuilding neighbourhoods."""
