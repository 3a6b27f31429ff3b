"""What users read, and the program that writes those parts of it that are read off the code.

Nothing that runs imports this.
"""
