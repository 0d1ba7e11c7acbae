"""Poses of a human body as readable settings of limbs, and the bone rotations of a pose.

Directions are those of the limb's upper part in the frame of the chest (arms) or the pelvis (legs), written as
(outward, up, front) so that left and right read alike. Elbows and knees are hinges: an arm also names where its
forearm points (the upper arm turns so that the elbow can do it), a leg how far its knee is bent and its thigh turned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = tuple[float, float, float]
Matrix: TypeAlias = NDArray[np.float64]

_DOWN: Vector = (0.30, -1.0, 0.05)


@dataclass(frozen=True)
class Arm:
    """Directions of upper arm and forearm; curl of the finger joints and turn of the hand (thumb outward), degrees."""

    upper: Vector = _DOWN
    fore: Vector = (0.22, -1.0, 0.35)
    curl: float = 12.0
    turn: float = 0.0


@dataclass(frozen=True)
class Leg:
    """Direction of the thigh; bend of the knee, outward turn of the thigh, lift of the toes, degrees."""

    thigh: Vector = (0.10, -1.0, 0.0)
    knee: float = 3.0
    turn: float = 5.0
    toes: float = 0.0


@dataclass(frozen=True)
class Pose:
    """A whole body: limbs, then spine and head as (forward, to the left side, turn left) degrees, and a lean."""

    left_arm: Arm = Arm()
    right_arm: Arm = Arm()
    left_leg: Leg = Leg()
    right_leg: Leg = Leg()
    spine: Vector = (0.0, 0.0, 0.0)
    head: Vector = (0.0, 0.0, 0.0)
    lean: float = 0.0


def _both(arm: Arm = Arm(), leg: Leg = Leg(), **rest: object) -> Pose:  # noqa: B008 (frozen)
    return replace(Pose(arm, arm, leg, leg), **rest)  # type: ignore[arg-type]


_SIDE = Arm((1.0, 0.0, 0.0), (1.0, 0.0, 0.15))
_FRONT = Arm((0.25, -0.05, 1.0), (0.05, 0.1, 1.0))
_UP = Arm((0.45, 1.0, 0.05), (0.12, 1.0, 0.25))
_HIP = Arm((0.80, -0.70, -0.20), (-0.28, -0.90, 0.35), 20)
_GUARD = Arm((0.35, -0.85, 0.35), (0.05, 0.75, 0.75), 62)
_SWING_FRONT = Arm((0.15, -0.85, 0.55), (0.0, -0.35, 1.0), 35)
_SWING_BACK = Arm((0.30, -0.85, -0.55), (0.25, -1.0, 0.15), 35)

TRAINING_POSES: dict[str, Pose] = {
    "stand": Pose(),
    "t-pose": _both(_SIDE, Leg((0.18, -1, 0))),
    "walk": Pose(
        _SWING_BACK,
        _SWING_FRONT,
        Leg((0.06, -0.9, 0.45), 12, toes=12),
        Leg((0.06, -0.93, -0.35), 28, toes=-15),
        (4, 0, 6),
    ),
    "run": Pose(
        Arm((0.25, -0.7, -0.75), (0.20, -0.65, 0.75), 50),
        Arm((0.20, -0.85, 0.45), (-0.05, 0.55, 0.85), 50),
        Leg((0.08, -0.35, 0.95), 95),
        Leg((0.06, -0.90, -0.45), 65, toes=-20),
        (10, 0, 12),
        lean=10,
    ),
    "sit": _both(Arm((0.30, -0.85, 0.35), (0.0, -0.25, 1.0)), Leg((0.18, -0.12, 1), 85, toes=0), spine=(-4, 0, 0)),
    "squat": _both(_FRONT, Leg((0.50, -0.15, 1), 105, 10, 25), spine=(18, 0, 0), head=(-15, 0, 0), lean=22),
    "arms-up": _both(_UP, Leg((0.15, -1, 0))),
    "surrender": _both(Arm((1.0, -0.05, 0.05), (0.25, 1.0, 0.15)), Leg((0.2, -1, 0))),
    "hand-on-hip": Pose(
        _HIP, replace(_UP, fore=(0.75, 1.0, 0.2)), Leg((0.2, -1, 0.1), 8), Leg((0.1, -1, 0)), (0, 9, 0)
    ),
    "star": _both(Arm((1.0, 0.85, 0.0), (1.0, 0.95, 0.1), 3), Leg((0.55, -1, 0))),
    "kick": Pose(
        Arm((0.95, -0.25, -0.25), (1.0, 0.1, 0.25)),
        Arm((0.65, -0.35, 0.75), (0.15, 0.3, 1.0)),
        Leg((0.08, -1.0, -0.08), 8),
        Leg((0.12, -0.02, 1.0), 12, toes=-10),
        (-6, 0, -10),
        lean=-8,
    ),
    "bow": _both(Arm((0.20, -0.55, 0.85), (0.1, -0.4, 1.0)), Leg((0.14, -0.85, 0.55), 6), spine=(38, 0, 0), lean=30),
    "boxer": Pose(
        _GUARD,
        Arm((0.30, -0.25, 0.95), (0.0, 0.25, 1.0), 65),
        Leg((0.18, -0.92, 0.35), 28),
        Leg((0.18, -0.95, -0.25), 22),
        (12, 0, -16),
        (0, 0, 10),
    ),
    "lunge": Pose(_SIDE, _SIDE, Leg((0.10, -0.30, 1.0), 78, toes=3), Leg((0.08, -0.85, -0.6), 22, toes=10), (2, 0, 0)),
    "twist": Pose(
        Arm((0.85, -0.15, 0.45), (0.3, 0.1, 1.0)),
        Arm((0.9, -0.2, -0.4), (0.75, 0.35, 0.25)),
        Leg((0.22, -1, 0.0), 6),
        Leg((0.22, -1, 0.0), 6),
        (5, 4, 42),
        (0, 0, 22),
    ),
    "kneel": Pose(
        Arm((0.25, -0.75, 0.6), (0.0, -0.25, 1.0)),
        Arm((0.35, -0.95, 0.1), (0.3, -1.0, 0.3)),
        Leg((0.12, -0.08, 1.0), 88),
        Leg((0.08, -1.0, 0.03), 92, toes=-25),
        (3, 0, 0),
    ),
}

TEST_POSES: dict[str, Pose] = {
    "throw": Pose(
        Arm((0.75, 0.0, 0.7), (0.45, 0.15, 1.0)),
        Arm((1.0, 0.25, -0.30), (0.35, 1.0, -0.10), 45),
        Leg((0.15, -0.80, 0.6), 35),
        Leg((0.18, -0.95, -0.3), 15),
        (-6, -6, -30),
        (0, 0, 18),
    ),
    "archer": Pose(
        Arm((1.0, 0.05, 0.2), (1.0, 0.05, 0.2), 45),
        Arm((0.95, 0.1, 0.25), (-0.75, 0.15, 0.75), 60),
        Leg((0.25, -1, 0.1)),
        Leg((0.25, -1, -0.1)),
        (0, 0, -12),
        (0, 0, 55),
    ),
    "tree": Pose(_UP, _UP, Leg((0.06, -1, 0)), Leg((0.75, -0.55, 0.45), 105, 25, -20), (0, 4, 0)),
    "high-knee": Pose(
        Arm((0.20, -0.8, -0.5), (0.20, -0.35, 0.8), 40),
        Arm((0.20, -0.75, 0.6), (0.0, 0.75, 0.7), 40),
        Leg((0.10, 0.05, 1.0), 105),
        Leg((0.06, -1.0, -0.05), 5),
        (5, 0, 8),
    ),
    "balance": Pose(
        _SIDE,
        replace(_SIDE, upper=(1, 0.15, 0)),
        Leg((0.06, -0.75, 0.75), 10),
        Leg((0.10, -0.90, -0.6), 12, toes=-30),
        (6, 0, 0),
        (-25, 0, 0),
        42,
    ),
    "dance": Pose(
        Arm((0.75, 0.85, 0.1), (-0.25, 1.0, 0.25)),
        Arm((0.95, -0.45, 0.05), (0.35, -0.2, 1.0)),
        Leg((0.10, -1, 0.05), 5),
        Leg((0.60, -0.70, 0.35), 72, 22, -25),
        (0, 16, 10),
        (0, -10, 15),
    ),
    "carry": _both(
        Arm((0.35, -0.9, 0.25), (0.1, 0.05, 1.0), 25), Leg((0.14, -0.93, 0.35), 35), spine=(6, 0, 0), lean=4
    ),
    "crouch": Pose(
        Arm((0.45, -0.6, 0.75), (0.15, -0.6, 0.9)),
        Arm((0.85, -0.4, -0.35), (0.75, -0.75, 0.3)),
        Leg((0.38, -0.25, 1.0), 98, 8, 10),
        Leg((0.30, -0.75, 0.75), 92, 5, 10),
        (30, 0, 12),
        (-22, 0, 0),
        18,
    ),
}

_LAP = Arm((0.20, -0.85, 0.45), (-0.05, -0.35, 1.0), 15)
_CROSSED = Arm((0.22, -0.85, 0.42), (-0.85, 0.10, 0.55), 25)
_TOGETHER = Arm((0.30, -0.80, 0.45), (-0.55, 0.25, 0.85), 5)
_AT_SIDES = Arm((0.07, -1.0, 0.0), (0.02, -1.0, 0.12), 15)
_BEHIND_HEAD = Arm((0.90, 0.55, -0.05), (-0.75, 0.60, -0.25), 20)

POSE_FAMILIES: dict[str, dict[str, Pose]] = {
    "crouching": {
        "squat": TRAINING_POSES["squat"],
        "crouch": TEST_POSES["crouch"],
        "kneel": TRAINING_POSES["kneel"],
        "deep-squat": _both(_LAP, Leg((0.42, 0.05, 1), 125, 15, 30), spine=(28, 0, 0), head=(-18, 0, 0), lean=15),
        "all-fours": _both(
            Arm((0.18, -0.15, 1.0), (0.12, -0.1, 1.0)), Leg((0.14, -0.1, 1.0), 88, toes=-35), head=(-30, 0, 0), lean=78
        ),
        "sprint-start": Pose(
            _FRONT, _FRONT, Leg((0.12, 0.1, 1.0), 110), Leg((0.10, -0.6, 0.8), 75), (12, 0, 0), (-20, 0, 0), 62
        ),
    },
    "bent": {
        "bow": TRAINING_POSES["bow"],
        "twist": TRAINING_POSES["twist"],
        "touch-toes": _both(
            Arm((0.15, -0.1, 1.0), (0.05, -0.1, 1.0)), Leg((0.10, -0.55, 0.85), 5), spine=(52, 0, 0), lean=55
        ),
        "lean-left": Pose(_AT_SIDES, _UP, Leg((0.25, -1, 0)), Leg((0.25, -1, 0)), (0, 34, 0), (0, 12, 0)),
        "lean-back": _both(_HIP, Leg((0.15, -0.95, -0.15), 8), spine=(-30, 0, 0), head=(-15, 0, 0)),
    },
    "raised-arms": {
        "arms-up": TRAINING_POSES["arms-up"],
        "surrender": TRAINING_POSES["surrender"],
        "star": TRAINING_POSES["star"],
        "behind-head": _both(_BEHIND_HEAD, Leg((0.12, -1, 0))),
        "one-arm": Pose(_UP, _AT_SIDES, Leg((0.1, -1, 0)), Leg((0.1, -1, 0)), (0, -5, 0)),
        "reach": Pose(
            Arm((0.10, 0.85, 0.65), (0.05, 0.8, 0.75), 30), _SWING_BACK, Leg((0.1, -1, 0.1)), Leg((0.1, -1, -0.2), 12)
        ),
    },
    "hands-on-hips": {
        "hand-on-hip": TRAINING_POSES["hand-on-hip"],
        "hands-on-hips": _both(_HIP, Leg((0.22, -1, 0))),
        "contrapposto": Pose(_HIP, _AT_SIDES, Leg((0.08, -1, 0)), Leg((0.25, -0.95, 0.25), 22, 15), (0, 8, 6)),
    },
    "touching": {
        "attention": _both(_AT_SIDES, Leg((0.02, -1, 0))),
        "crossed-arms": _both(_CROSSED, Leg((0.08, -1, 0))),
        "hands-together": _both(_TOGETHER, Leg((0.05, -1, 0))),
        "hand-to-face": Pose(
            Arm((0.30, -0.85, 0.45), (-0.30, 0.95, 0.35), 45), _AT_SIDES, Leg((0.04, -1, 0)), Leg((0.04, -1, 0.05), 8)
        ),
        "crossed-legs": _both(_LAP, Leg((-0.10, -1.0, 0.05), 4)),
    },
    "seated": {
        "sit": TRAINING_POSES["sit"],
        "hands-on-knees": _both(_LAP, Leg((0.15, 0.0, 1), 92), spine=(12, 0, 0)),
        "cross-legged": _both(_LAP, Leg((0.85, 0.05, 0.65), 118, 38), spine=(10, 0, 0)),
        "long-sit": _both(
            Arm((0.45, -0.8, -0.5), (0.40, -0.9, -0.3), 5), Leg((0.15, 0.05, 1), 8, toes=10), spine=(-8, 0, 0), lean=-8
        ),
        "leg-over-leg": Pose(
            _LAP, _CROSSED, Leg((0.08, 0.0, 1), 90), Leg((-0.05, 0.22, 1), 75, 10), (6, 0, 4), (0, 0, -10)
        ),
    },
}
"""Poses by what they have in common, for `acnn.datasets.humans.kinds`; some are also poses for training or testing."""

UNSEEN_POSES: dict[str, Pose] = {
    "climb": Pose(
        Arm((0.20, 0.9, 0.6), (0.05, 1.0, 0.45), 40),
        Arm((0.60, 0.1, 0.8), (-0.05, 0.9, 0.5), 40),
        Leg((0.08, -1.0, -0.12), 10, toes=-15),
        Leg((0.55, -0.05, 0.85), 112, 15, 5),
        (8, 0, -8),
        (-18, 0, 5),
    ),
    "telephone": Pose(
        Arm((0.45, -0.85, 0.3), (0.05, 1.0, 0.25), 50),
        Arm((0.45, -0.85, -0.35), (0.20, -0.85, 0.45), 30),
        Leg((0.08, -1, -0.05), 2),
        Leg((0.12, -0.93, 0.35), 24, 20, 4),
        (3, 7, -14),
        (6, 14, -12),
    ),
    "warrior": Pose(
        Arm((0.25, 1.0, -0.1), (0.20, 1.0, 0.1), 5),
        Arm((0.50, -0.6, -0.75), (0.55, -0.6, -0.6), 5),
        Leg((0.85, -0.45, 0.45), 78, 40, 2),
        Leg((0.65, -0.95, -0.15), 3, 15),
        (-6, -14, 8),
        (-12, 0, 28),
    ),
    "side-bend": Pose(
        Arm((0.20, 1.0, 0.0), (-0.55, 0.85, 0.1)),
        Arm((0.18, -1.0, 0.1), (0.12, -1.0, 0.2)),
        Leg((0.32, -1, 0.0), 4),
        Leg((0.32, -1, 0.0), 4),
        (0, -30, 0),
        (0, -12, 0),
    ),
    "skater": Pose(
        Arm((0.40, -0.25, -0.9), (0.45, -0.15, -0.8), 20),
        Arm((0.25, -0.55, 0.85), (-0.55, -0.25, 0.85), 20),
        Leg((0.14, -0.65, 0.8), 66, 5, 12),
        Leg((0.55, -0.8, -0.5), 22, 10, -20),
        (16, 0, -16),
        (-28, 0, 8),
        28,
    ),
    "hug": _both(Arm((0.80, -0.05, 0.75), (-0.70, 0.05, 0.85), 15), Leg((0.06, -1, 0.05), 12), spine=(9, 0, 0)),
    "golf": Pose(
        Arm((0.05, -0.75, 0.75), (-0.35, -0.85, 0.55), 60),
        Arm((0.45, -0.85, 0.15), (0.45, -0.75, 0.55), 60),
        Leg((0.24, -0.95, 0.32), 26, 12, 4),
        Leg((0.24, -0.95, 0.28), 20, 12, 4),
        (26, -5, -34),
        (10, 0, 28),
        10,
    ),
    "leap": Pose(
        Arm((0.55, 0.45, 0.75), (0.50, 0.45, 0.8), 5),
        Arm((1.0, 0.35, -0.55), (0.95, 0.4, -0.45), 5),
        Leg((0.08, -0.2, 1.0), 6, toes=-25),
        Leg((0.18, -0.45, -0.9), 8, 10, -30),
        (-4, 0, -6),
        (-5, 0, 0),
    ),
}
"""Poses of no dataset: for measuring networks that were trained on all others, and never to be trained on."""


def bone_turns(
    pose: Pose, bones: Sequence[str], heads: Matrix, jitter: float = 0.0, seed: int = 0
) -> dict[str, Matrix]:
    """Rotations (3, 3) of the bones, in the axes of the rest pose, that bring a body into a pose.

    Parameters
    ----------
    bones, heads
        Names and turning points (b, 3) of the body at rest.
    jitter : float
        Standard deviation of a random change of every direction and angle, in degrees; drawn with `seed`.
    """
    random = np.random.default_rng(seed)
    at = {name: heads[b] for b, name in enumerate(bones)}
    turns: dict[str, Matrix] = {"root": _turn((1, 0, 0), pose.lean)}
    _spread(turns, pose.spine, [f"spine0{k}" for k in (5, 4, 3, 2, 1)], jitter * random.standard_normal(3))
    _spread(turns, pose.head, ["neck01", "neck02", "neck03", "head"], jitter * random.standard_normal(3))
    for side, arm, leg in (("L", pose.left_arm, pose.left_leg), ("R", pose.right_arm, pose.right_leg)):
        out = np.array([1.0 if side == "L" else -1.0, 1.0, 1.0])
        shake = [_random_turn(random, jitter) for _ in range(3)]
        _move_arm(turns, at, side, out, arm, shake)
        _move_leg(turns, at, side, out, leg, shake[2], jitter * random.standard_normal())
    return turns


def blend(pose: Pose, other: Pose, weight: float) -> Pose:
    """The pose that lies `weight` (0 to 1) of the way from one to the other."""
    mixed: dict[str, Any] = {}
    for name, value in vars(pose).items():
        target = getattr(other, name)
        if isinstance(value, Arm | Leg):
            parts: dict[str, Any] = {key: _mix(v, getattr(target, key), weight) for key, v in vars(value).items()}
            mixed[name] = type(value)(**parts)
        else:
            mixed[name] = _mix(value, target, weight)
    return Pose(**mixed)


def combined(arms: Pose, other_arm: Pose, legs: Pose, trunk: Pose) -> Pose:
    """A pose with the left arm, the right arm, the legs and the rest of four others; the lean is that of the legs."""
    return Pose(arms.left_arm, other_arm.right_arm, legs.left_leg, legs.right_leg, trunk.spine, trunk.head, legs.lean)


def with_curl(pose: Pose, curl: tuple[float | None, float | None]) -> Pose:
    """The pose with another bend of the finger joints of the left and the right hand, degrees; None changes nothing."""
    left, right = (
        arm if bend is None else replace(arm, curl=bend)
        for arm, bend in zip((pose.left_arm, pose.right_arm), curl, strict=True)
    )
    return replace(pose, left_arm=left, right_arm=right)


def _mix(a: Any, b: Any, weight: float) -> Any:
    if isinstance(a, tuple):
        return tuple((1 - weight) * x + weight * y for x, y in zip(a, b, strict=True))
    return (1 - weight) * a + weight * b


def _move_arm(
    turns: dict[str, Matrix], at: Mapping[str, Matrix], side: str, out: Matrix, arm: Arm, shake: Sequence[Matrix]
) -> None:
    shoulder, elbow, wrist = (at[f"{name}.{side}"] for name in ("upperarm01", "lowerarm01", "wrist"))
    upper0, fore0 = _unit(elbow - shoulder), _unit(wrist - elbow)
    hinge0 = _unit(np.cross(upper0, fore0))
    upper = shake[0] @ _unit(out * arm.upper)
    fore = shake[1] @ shake[0] @ _unit(out * arm.fore)
    swing = _between(upper0, upper)
    hinge = np.cross(upper, fore)
    # the nearly straight arm has no plane of its own: it keeps the one it had, and goes over to its own with the bend
    trust = min(1.0, float(np.linalg.norm(hinge)) / 0.5)
    twist = trust * _angle_about(upper, swing @ hinge0, hinge) if trust > 0.05 else 0.0
    bend = _angle(upper, fore) - _angle(upper0, fore0)
    # the collarbone and the shoulder blade take part in lifting, hardly in lowering
    part = _vector(swing)
    lifted = min(1.0, max(0.0, float(upper[1] - upper0[1])))
    turns[f"clavicle.{side}"] = _from_vector(0.14 * lifted * part)
    turns[f"shoulder01.{side}"] = _from_vector((0.08 + 0.12 * lifted) * part)
    carried = turns[f"clavicle.{side}"] @ turns[f"shoulder01.{side}"]
    turns[f"upperarm01.{side}"] = carried.T @ swing @ _turn(upper0, 0.5 * twist)
    turns[f"upperarm02.{side}"] = _turn(upper0, 0.5 * twist)
    turns[f"lowerarm01.{side}"] = _turn(hinge0, bend)
    outward = arm.turn if side == "L" else -arm.turn
    turns[f"lowerarm02.{side}"] = _turn(fore0, 0.5 * outward)
    turns[f"wrist.{side}"] = _turn(fore0, 0.5 * outward)
    across = at[f"finger2-1.{side}"] - at[f"finger5-1.{side}"]
    for finger in range(1, 6):
        curl_weight = 0.45 if finger == 1 else 1.0
        for joint in (1, 2, 3):
            start = at[f"finger{finger}-{joint}.{side}"]
            along = (
                at[f"finger{finger}-{joint + 1}.{side}"] - start
                if joint < 3
                else start - at[f"finger{finger}-2.{side}"]
            )
            palm = np.cross(along, across) * out[0]
            turns[f"finger{finger}-{joint}.{side}"] = _turn(_unit(np.cross(along, palm)), curl_weight * arm.curl)


def _move_leg(
    turns: dict[str, Matrix], at: Mapping[str, Matrix], side: str, out: Matrix, leg: Leg, shake: Matrix, knee: float
) -> None:
    hip, joint, ankle = (at[f"{name}.{side}"] for name in ("upperleg01", "lowerleg01", "foot"))
    thigh0, shin0 = _unit(joint - hip), _unit(ankle - joint)
    hinge0 = _unit(np.array([1.0, 0.0, 0.0]) - thigh0[0] * thigh0)
    # a straight leg's thigh leans forward a little and its shin back: that is what "down" means here
    swing = _between(thigh0, shake @ _unit(_unit(out * leg.thigh) + np.array([0.0, 0.0, 0.07])))
    outward = leg.turn if side == "R" else -leg.turn  # about the thigh, which points down
    part = _from_vector(0.12 * _vector(swing))
    turns[f"pelvis.{side}"] = part
    turns[f"upperleg01.{side}"] = part.T @ swing @ _turn(thigh0, 0.6 * outward)
    turns[f"upperleg02.{side}"] = _turn(thigh0, 0.4 * outward)
    turns[f"lowerleg01.{side}"] = _turn(hinge0, max(0.0, leg.knee + knee))
    turns[f"foot.{side}"] = _turn(_unit(np.cross(shin0, np.array([0.0, 0.0, 1.0]))), leg.toes)


def _spread(turns: dict[str, Matrix], angles: Vector, bones: Sequence[str], shake: Matrix) -> None:
    forward, side, turn = (np.asarray(angles) + shake) / len(bones)
    step = _turn((0, 1, 0), turn) @ _turn((0, 0, 1), -side) @ _turn((1, 0, 0), forward)
    turns.update(dict.fromkeys(bones, step))


def _unit(vector: Matrix) -> Matrix:
    return np.asarray(vector, np.float64) / np.linalg.norm(vector)


def _angle(a: Matrix, b: Matrix) -> float:
    return float(np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b)))


def _angle_about(axis: Matrix, a: Matrix, b: Matrix) -> float:
    return float(np.degrees(np.arctan2(axis @ np.cross(a, b), a @ b - (a @ axis) * (b @ axis))))


def _from_vector(vector: Matrix) -> Matrix:
    from scipy.spatial.transform import Rotation

    return Rotation.from_rotvec(vector).as_matrix()


def _vector(matrix: Matrix) -> Matrix:
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(matrix).as_rotvec()


def _turn(axis: Matrix | Vector, degrees: float) -> Matrix:
    return _from_vector(np.radians(degrees) * _unit(np.asarray(axis, np.float64)))


def _between(a: Matrix, b: Matrix) -> Matrix:
    """The smallest rotation that takes direction a to direction b."""
    axis = np.cross(a, b)
    norm = float(np.linalg.norm(axis))
    return np.eye(3) if norm < 1e-9 else _from_vector(axis / norm * np.arctan2(norm, a @ b))


def _random_turn(random: np.random.Generator, degrees: float) -> Matrix:
    return _from_vector(np.radians(degrees) * random.standard_normal(3))
