"""A fuzz of the public interface: calls with arguments that are right but for one or two of them.

Every ending must be a result, or a ValueError or TypeError that comes from wellcal and names an argument of
the call. Inputs are numbered, and each follows from its seed and number alone: ``python -m fuzz --input 137``
repeats one of them.
"""
