from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acnn.errors import InputError
from acnn.network import Architecture, LayerSpec

PAPER = (
    "FC64+IC64+IC128+IC256+FC1024+FC512+Softmax",
    "IC32+FC1024+DO(0.5)+FC2048+DO(0.5)+Softmax",
    "FC64+IC64+BN+IC128+BN+IC256+BN+FC1024:linear+BN+FC512+BN+Softmax",
    "FC64+RES(IC64)+RES(IC64+BN+FC64:linear)+DO(0.3)+FC256+Softmax",
    "Softmax",
)

leaves = st.one_of(
    st.builds(LayerSpec, st.sampled_from(["FC", "IC"]), size=st.integers(1, 99_999), relu=st.booleans()),
    st.just(LayerSpec("BN")),
    st.builds(lambda rate: LayerSpec("DO", rate=rate / 100), st.integers(0, 99)),
)
bodies = st.lists(leaves, min_size=1, max_size=4).filter(lambda body: any(layer.size for layer in body))
layers = st.lists(st.one_of(leaves, st.builds(lambda body: LayerSpec("RES", body=tuple(body)), bodies)), max_size=6)


@pytest.mark.parametrize("text", PAPER)
def test_strings_come_back(text: str) -> None:
    assert str(Architecture.parse(text)) == text


@given(layers)
def test_architectures_come_back(layers: list[LayerSpec]) -> None:
    architecture = Architecture(tuple(layers))
    assert Architecture.parse(str(architecture)) == architecture


def test_what_is_read() -> None:
    assert Architecture.parse(" fc16 + ic32:Linear+bn+ DO( .25 )+SOFTMAX ").layers == (
        LayerSpec("FC", size=16),
        LayerSpec("IC", size=32, relu=False),
        LayerSpec("BN"),
        LayerSpec("DO", rate=0.25),
    )


@pytest.mark.parametrize(
    ("text", "position", "why"),
    [
        ("", "at its end", "expected a layer"),
        ("FC64", "at its end", "the last one must be Softmax"),
        ("FC64+", "at its end", "expected a layer"),
        ("FC64+XY3+Softmax", "position 6 ('XY3+Softmax')", "expected a layer"),
        ("FC+Softmax", "position 3 ('+Softmax')", "number of output channels"),
        ("FC64+IC0+Softmax", "position 6", "between 1 and 99999"),
        ("FC1000000+Softmax", "position 1 ", "between 1 and 99999"),
        ("FC64:tanh+Softmax", "position 6", "':linear'"),
        ("DO+Softmax", "position 3", "probability"),
        ("DO(1.0)+Softmax", "position 1 ", "below 1"),
        ("DO(0.5+Softmax", "position 7", "never closed"),
        ("RES(IC64+Softmax", "position 10", "may not stand inside RES"),
        ("RES(RES(IC64))+Softmax", "position 5", "may not stand inside RES"),
        ("RES(IC64", "at its end", "never closed"),
        ("RES(BN)+Softmax", "position 1 ", "needs a layer with channels"),
        ("FC64+Softmax+FC64", "position 13", "nothing may follow"),
        ("FC64 IC64+Softmax", "position 6", "expected '+'"),
        ("FC６４+Softmax", "position 3", "number of output channels"),
    ],
)
def test_mistakes_are_placed(text: str, position: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        Architecture.parse(text)
    assert position in str(caught.value)
    assert why in str(caught.value)


@given(st.text(alphabet="FCICBNDORES()+:.linearSoftmax0123456789 ", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        architecture = Architecture.parse(text)
    except InputError:
        return
    assert Architecture.parse(str(architecture)) == architecture
