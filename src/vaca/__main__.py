"""`python -m vaca` is the command line."""

from vaca.cli import main

if __name__ == "__main__":
    main()
