"""`python -m cudatut`."""

from cudatut.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
