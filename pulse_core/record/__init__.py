"""What may be recorded and by whom: the gate that every draft passes.

It requests no effects and carries none out.
"""
