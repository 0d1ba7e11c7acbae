"""Runs: complete tasks that combine the subpackages: train, match, evaluate, transfer, view, demo."""
