"""The application: what people and programs ask of Pulse, over ports, with typed answers.

The command line shows these answers today, other surfaces may tomorrow. Nothing here imports an adapter or prints.
"""
