"""Arguments of a wrong type: a TypeError that names the function, the argument, what is needed and what was given."""

import inspect

import numpy as np
import pytest
from analytic import bumpy, sphere

import acnn
from acnn.arguments import check_arguments
from acnn.correspondence import soft_map_from_point_map
from acnn.descriptors import hks_of, wks_of
from acnn.surface import eigenpairs, principal_frames, stiffness
from acnn.training.cache_entries import read_patches

DOCUMENTED = [eigenpairs, principal_frames, stiffness, hks_of, wks_of, read_patches, soft_map_from_point_map]
PUBLIC = [
    *(getattr(acnn, name) for name in acnn.__all__ if inspect.isfunction(getattr(acnn, name))),
    *DOCUMENTED,
    acnn.nn.Patches.of,
    *(getattr(acnn.testing, name) for name in dir(acnn.testing) if name.startswith("assert_")),
]


class Unknown:
    """A type that nothing takes."""


@pytest.mark.parametrize("function", PUBLIC, ids=lambda function: function.__qualname__)
def test_every_public_function_checks_its_arguments(function) -> None:
    names = list(inspect.signature(function).parameters)
    if not names:
        return
    with pytest.raises(TypeError, match=rf"^{function.__qualname__}: ({'|'.join(names)}) must be .+, not Unknown$"):
        function(**dict.fromkeys(names, Unknown()))


def test_what_is_needed_and_how_to_get_it_is_told() -> None:
    mesh = sphere(1)
    surface = acnn.surface_of(mesh)
    for call, words in [
        (
            lambda: acnn.match(mesh.vertices, mesh),
            "a must be a Mesh or PointCloud, not ndarray; .*from_arrays",
        ),
        (lambda: acnn.match(mesh, "b.ply"), "b must be a Mesh or PointCloud, not str; .*acnn.load"),
        (lambda: acnn.match(surface, surface, method="descriptors"), "a must be .*, not Surface; give the shape"),
        (lambda: acnn.match_shape(mesh, "humans"), "run must be a Run, not str; .*acnn.open_run"),
        (lambda: acnn.shot(mesh.vertices), "shape must be a Mesh, PointCloud or Surface, not ndarray; .*from_arrays"),
        (lambda: stiffness(mesh), "surface must be a Surface, not Mesh; .*acnn.surface_of"),
        (lambda: acnn.cotangent_laplacian(mesh, None), "v must be an array, not Mesh"),
        (lambda: acnn.shot(mesh, "12"), "radius must be a number, not str"),
        (lambda: acnn.surface_of(mesh.vertices), "shape must be a Mesh, PointCloud or Surface, not ndarray"),
        (lambda: acnn.surface_of(mesh, True), "unit must be a number or None, not bool"),
        (lambda: acnn.load(mesh), "path must be a string or a path, not Mesh"),
        (lambda: acnn.load("a.ply", repair=1), "repair must be a boolean, not int"),
        (lambda: acnn.refine("map", mesh, mesh), "matches must be a SoftMap or an array, not str"),
        (lambda: acnn.PatchSettings(angles="8"), "angles must be a whole number, not str"),
        (lambda: acnn.PatchSettings(scales=("3",)), "scales must be numbers"),
        (lambda: acnn.nn.IntrinsicConv(1, 2, 3.5, 4), "angles must be a whole number or None, not float"),
        (lambda: acnn.build_patches(mesh, {"angles": 8}), "settings must be a PatchSettings, not dict"),
    ]:
        with pytest.raises(TypeError, match=words):
            call()


def test_a_shape_in_place_of_its_arrays_is_named_before_what_is_missing() -> None:
    mesh = acnn.builtin_human()
    with pytest.raises(TypeError, match="v must be an array, not Mesh; give its vertices and faces"):
        acnn.cotangent_laplacian(mesh)  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'f'"):
        acnn.cotangent_laplacian(mesh.vertices)  # type: ignore[call-arg]


def test_numbers_of_numpy_and_whole_numbers_are_numbers() -> None:
    @check_arguments
    def function(number: float, whole: int = 0, choice: bool = False, several: tuple[float, ...] = ()) -> float:
        return number

    assert function(1) == function(np.float32(1)) == function(np.int8(1), np.int64(2), np.bool_(True), [1]) == 1
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        function()
    for wrong in ({"number": "1"}, {"number": None}, {"whole": 1.0}, {"choice": 1}, {"several": 1}):
        with pytest.raises(TypeError, match=r"function: \w+ must be"):
            function(**{"number": 1.0} | wrong)


def test_a_layer_and_a_model_check_what_they_are_given() -> None:
    import torch

    mesh = bumpy(1)
    operator = acnn.build_patches(mesh, acnn.PatchSettings(angles=2, scales=(20.0,)))
    layer = acnn.nn.IntrinsicConv(3, 4, angles=2, scales=1)
    values = torch.ones(len(mesh.vertices), 3)
    assert layer(values, acnn.nn.Patches(operator)).shape == (len(mesh.vertices), 4)
    with pytest.raises(TypeError, match=r"must be a Patches, not PatchOperator; make them with acnn\.nn\.Patches"):
        layer(values, operator)
    with pytest.raises(TypeError, match=r"f must be a Tensor, not ndarray; make one with torch.from_numpy"):
        layer(values.numpy(), acnn.nn.Patches(operator))
    with pytest.raises(TypeError, match="Patches: operator must be a PatchOperator, not Mesh"):
        acnn.nn.Patches(mesh)
