"""Tables: which kind each column is, and how files are read and written."""
