"""Training: settings, presets, the loop, checkpoints and several processes."""

from acnn.training.config import RunConfig, TrainSettings, preset_config, presets, read_config

__all__ = ["RunConfig", "TrainSettings", "preset_config", "presets", "read_config"]
