"""`python -m durability.launch audit|classes|migrate|restore|up`: what make's targets run."""

from __future__ import annotations

import signal
import sys

from durability.errors import AuditError
from durability.launch.outcome import INCOMPLETE

USAGE = "usage: python -m durability.launch audit | classes | migrate | restore | up   (options: see `make help`)"


def main(arguments: list[str]) -> int:
    """Run a command; errors that a user can mend are printed, everything else keeps its traceback."""
    from durability.runtime import processes

    processes.exit_on_sigterm()
    try:
        match arguments:
            case ["audit"]:
                from durability.launch import audit

                return audit.run()
            case ["classes"]:
                from durability.launch import classes

                classes.ensure()
                return 0
            case ["migrate"]:
                from durability.launch import airflow_home

                airflow_home.migrate()
                return 0
            case ["restore"]:
                from durability.launch import restore

                return restore.run()
            case ["up"]:
                from durability.launch import up

                return up.run()
    except AuditError as error:
        print(f"error: {error}", file=sys.stderr)
        return INCOMPLETE
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    print(USAGE, file=sys.stderr)
    return INCOMPLETE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
