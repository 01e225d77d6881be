"""``python -m horus_image.accel [--profile] [--smallest PIXELS] (script.py | -m module) [arguments]``."""

from __future__ import annotations

import argparse
import os
import runpy
import sys

from . import install
from ._calls import SMALLEST


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m horus_image.accel",
        description="Run a script, or a module, whose calls of scipy.ndimage, scikit-image and OpenCV Horus computes.",
        usage="%(prog)s [--profile] [--smallest PIXELS] (script.py | -m module) [arguments]",
    )
    parser.add_argument("--profile", action="store_true", help="print a table of calls to standard error at the end")
    parser.add_argument("--smallest", type=int, metavar="PIXELS", help=f"of the smallest image that Horus computes ({SMALLEST}; of OpenCV on a CPU by function)")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="a module, and its arguments")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="a script, and its arguments")
    options = parser.parse_args()
    target = options.module or options.script
    if not target:
        parser.error("a script, or -m and a module")
    if not options.module and not os.path.exists(target[0]):
        parser.error(f"there is no script {target[0]}")
    install(profile=options.profile, smallest=options.smallest)
    sys.argv = target
    if options.module:
        sys.path[0] = os.getcwd()
        runpy.run_module(target[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(target[0]))
        runpy.run_path(target[0], run_name="__main__")


if __name__ == "__main__":
    main()
