"""What the planner makes of a folder of graphs on several targets: a table for docs/."""
