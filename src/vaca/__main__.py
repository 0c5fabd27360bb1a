"""`python -m vaca` is the command line."""

from vaca.commands.app import main

if __name__ == "__main__":
    main()
