"""`python -m lasthop`: the command line."""

from lasthop.runtime.cli import main

if __name__ == "__main__":
    main()
