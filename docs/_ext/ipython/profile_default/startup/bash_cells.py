"""`%%bash` for the cells of the documentation: output in one piece, and a failing command fails the build.

IPython's own prints what it reads in pieces, which breaks lines of tables. A command that is meant to fail ends with
``|| echo "exit code $?"``.
"""

import subprocess

from IPython import get_ipython


def bash(line: str, cell: str) -> None:
    """Run a cell with bash and show stdout, then stderr."""
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", cell], capture_output=True, text=True)
    print(done.stdout + done.stderr, end="")
    done.check_returncode()


get_ipython().register_magic_function(bash, "cell")
