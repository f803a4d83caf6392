"""Static meaning: files and their imports, names, types and what may stand where."""
