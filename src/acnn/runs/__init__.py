"""Runs: whole tasks that join the subpackages: train, match, evaluate, transfer, view, demo."""
