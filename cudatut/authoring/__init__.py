"""What an author of a chapter is helped by: `python -m cudatut new` begins one, `python -m cudatut check` judges it."""
