"""``python -m skldp``: see `skldp.cli`."""

import sys

from skldp.cli import main

if __name__ == "__main__":
    sys.exit(main())
