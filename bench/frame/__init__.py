"""The frame of `make bench`: what every row shares. Rows live in bench/rows."""
