"""`python -m cygnet`: the command line."""

import sys

from cygnet.cli import main

sys.exit(main())
