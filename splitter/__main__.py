"""`python -m splitter` is the command `splitter`."""

from splitter.cli import main

main()
