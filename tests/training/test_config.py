import tomllib
from importlib import resources

import pytest

from acnn.errors import InputError
from acnn.training import RunConfig, preset_config, presets, read_config


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_read_and_round_trips_through_a_file(name, tmp_path):
    config = preset_config(name)
    (tmp_path / "c.toml").write_text(str(config))
    assert read_config(tmp_path / "c.toml") == config
    assert RunConfig.from_dict(config.as_dict()) == config
    assert config.preset == name


def test_the_papers_preset_is_the_papers_network():
    config = preset_config("paper-faust")
    layers = config.train.architecture.replace("+BN", "").replace(":linear", "")
    assert layers == "FC64+IC64+IC128+IC256+FC1024+FC512+Softmax"
    assert (config.patches.angles, config.patches.alpha) == (16, 100.0)
    assert (config.train.learning_rate, config.train.schedule) == (1e-3, "constant")


def test_best_knows_shape_only_and_says_that_its_name_meant_something_else(caplog):
    assert "valences" not in preset_config("best").descriptors.kinds
    assert "faust-connectivity" in caplog.text
    caplog.clear()
    assert "valences" in preset_config("faust-connectivity").descriptors.kinds
    assert not caplog.text


def test_settings_are_changed_by_name_from_text():
    config = preset_config("quick").with_changes(
        {"train.epochs": "3", "scales": "3,6,24", "area_weighted": "false", "alpha": "10", "kinds": "shot,wks"}
    )
    assert config.train.epochs == 3
    assert config.patches.scales == (3.0, 6.0, 24.0)
    assert config.descriptors.area_weighted is False
    assert config.patches.alpha == 10.0
    assert config.descriptors.kinds == ("shot", "wks")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"colour": "red"}, "colour"),
        ({"eigenpairs": "5"}, "descriptors.eigenpairs"),
        ({"epochs": "many"}, "many"),
        ({"epochs": "0"}, "at least 1"),
        ({"schedule": "wild"}, "wild"),
        ({"area_weighted": "maybe"}, "maybe"),
        ({"seed": "-1"}, "negative"),
        ({"label_smoothing": "2"}, "at most 1"),
        ({"epochs": 2.5}, "right kind"),
        ({"architecture": 5}, "right kind"),
        ({"minutes": "1", "core_minutes": "1"}, "not more than one"),
        ({"steps": "-1"}, "negative"),
    ],
)
def test_bad_settings_are_named(changes, word):
    with pytest.raises(InputError, match=word):
        preset_config("quick").with_changes(changes)


@pytest.mark.parametrize("preset", presets())
def test_a_budget_that_is_given_takes_the_place_of_the_presets(preset):
    for given in ({"epochs": 2}, {"minutes": 3.0}, {"core_minutes": "4"}, {"steps": "5"}):
        train = preset_config(preset).with_changes(given).train
        budget = {name: getattr(train, name) for name in ("steps", "minutes", "core_minutes")}
        assert budget == dict.fromkeys(budget, 0) | {key: float(given[key]) for key in given if key in budget}
        assert train.epochs == given.get("epochs", train.epochs)


@pytest.mark.parametrize("other", ["steps", "minutes", "core_minutes"])
def test_two_budgets_are_refused(other):
    with pytest.raises(InputError, match=f"epochs or {other}, not both"):
        preset_config("quick").with_changes({"epochs": 2, other: "3"})
    assert preset_config("quick").with_changes({"epochs": 2, other: 0}).train.epochs == 2


def test_unknown_presets_files_and_keys_are_named(tmp_path):
    with pytest.raises(InputError, match="paper-faust"):
        preset_config("nonsense")
    (tmp_path / "bad.toml").write_text("[train]\nlearning = 3\n")
    with pytest.raises(InputError, match="'learning'"):
        preset_config(str(tmp_path / "bad.toml"))
    (tmp_path / "worse.toml").write_text("[train\n")
    (tmp_path / "kind.toml").write_text('[patches]\nscales = ["a"]\n')
    with pytest.raises(InputError, match="'scales'"):
        read_config(tmp_path / "kind.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path / "worse.toml")


@pytest.mark.parametrize("preset", ["quick", "quick-partial"])
def test_the_demo_has_a_fixed_number_of_steps(preset):
    train = preset_config(preset).train
    assert train.steps > 0
    assert (train.minutes, train.core_minutes) == (0, 0)


def test_settings_of_earlier_runs_are_read_under_their_former_names(tmp_path):
    (tmp_path / "old.toml").write_text("[copies]\nblended = 2\nremeshed = 0.5\ncopies_seed = 7\n")
    config = read_config(tmp_path / "old.toml")
    assert (config.augment.interpolated, config.augment.remeshed, config.augment.augment_seed) == (2, 0.5, 7)
    assert config == RunConfig().with_changes({"copies.blended": "2", "remeshed": "0.5", "copies_seed": "7"})
    assert "[augment]\ninterpolated = 2\n" in str(config)
    shipped = resources.files("acnn.methods") / "models" / "humans-1" / "config.toml"
    text = shipped.read_text()
    assert "[copies]" in text
    assert RunConfig.from_dict(tomllib.loads(text)).augment.remeshed == 1.0


@pytest.mark.parametrize("values", [{"copies": {}, "augment": {}}, {"augment": {"blended": 1, "interpolated": 2}}])
def test_a_setting_given_under_both_of_its_names_is_refused(values):
    with pytest.raises(InputError, match="are the same"):
        RunConfig.from_dict(values)
