"""The command line starts at once: it loads a command's modules only when that command runs."""

import subprocess
import sys


def test_the_command_line_loads_no_command_and_no_output_library_at_its_start() -> None:
    program = "import sys, sweepledger.cli.app; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    loaded = {
        ".".join(name.split(".")[:2]) for name in done.stdout.split() if name.startswith("sweepledger.")
    }
    names = ("cli", "errors", "garbage_collection", "problems", "structs")
    assert loaded <= {f"sweepledger.{name}" for name in names}
    assert "rich" not in done.stdout.split()
