"""Data that ships with the package: ``helpdesk.csv``, a simulated table of two judges' verdicts with known truth."""
