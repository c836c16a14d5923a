"""``python -m flare_runtime.cli``."""

import sys

from flare_runtime.cli import main

sys.exit(main())
