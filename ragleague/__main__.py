"""``python -m ragleague`` is the command ``ragleague``, for whoever starts it without the script."""

from arena.cli.main import main

if __name__ == "__main__":
    main()
