"""Time, memory and sizes of the main job, measured; `make bench`."""
