"""``python -m shoal`` is ``shoal``."""

from shoal.cli.commands import main

if __name__ == "__main__":  # whoever imports every module does not mean to run it
    main()
