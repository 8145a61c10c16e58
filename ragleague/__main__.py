"""``python -m ragleague`` runs the command ``ragleague``."""

from arena.cli.main import main

if __name__ == "__main__":
    main()
