"""One file per topic; each has a list ROWS."""
