"""Kills, freezes and floods; the long ones run by make faults."""
