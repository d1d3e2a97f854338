"""`python -m headrace`: the same as the `headrace` command."""

from headrace.cli import main

if __name__ == "__main__":  # spawned workers import this file again, and must not start the command line
    main()
