"""`python -m acnn` is the command `acnn`."""

import sys

from acnn.cli import main

if __name__ == "__main__":
    sys.exit(main())
