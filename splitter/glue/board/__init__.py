"""What runs on the board. `splitter.glue.assemble` joins these modules into OUT/glue/run.py.

The rule of this folder: numpy and a TFLite runtime only, Python 3.8 to 3.13, nothing else of the
splitter, every module-level name unique in the folder (the modules end in one file).
"""
