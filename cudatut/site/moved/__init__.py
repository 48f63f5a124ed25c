"""What moved from one set of recordings to another, and which sentences say so: `python -m cudatut moved`."""
