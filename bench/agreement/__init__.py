"""Our verdicts and estimates beside those of a vendor's compiler, on a folder of graphs."""
