"""`python -m splitter` is the command `splitter`."""

from splitter.coreutils import splitter

splitter()
