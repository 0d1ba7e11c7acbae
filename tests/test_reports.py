"""Reports: the keys that `--json` prints are an interface, which code and scripts rely on."""

from dataclasses import dataclass, fields, replace

import pytest

from acnn.cache import CacheSummary
from acnn.evaluation.results import EvaluationReport, PerMapFigures, ShapeFigures
from acnn.evaluation.segmentation import SegmentationReport
from acnn.methods.run import RunRecord
from acnn.patches.anisotropic import KernelErrors
from acnn.patches.operator import PatchReport
from acnn.reports import Report
from acnn.runs.data import FamilyReport, HumansReport, PartsReport
from acnn.runs.demo import DemoFigures, DemoReport
from acnn.runs.machine import BenchReport, DoctorReport
from acnn.runs.match_results import MatchReport, SegmentReport, UnitReport
from acnn.runs.patches import PatchFileReport
from acnn.runs.register import RegisteredShape, RegisterReport
from acnn.runs.report import FigureReport, PageReport
from acnn.runs.sample import SampleReport
from acnn.runs.statistics import StatisticsReport
from acnn.runs.train import TrainingPlan
from acnn.runs.transfer import FitFigures, ShapeTransferReport, TransferReport
from acnn.training.prepare import PrepareReport

FIT = "scale mean_residual with_data repaired_vertices collapsed_faces inverted_faces largest_stretch"

KEYS = {
    EvaluationReport: "exact auc mean_error_x100 normalisation thresholds curve coverage shapes | per_map symmetric "
    "refined smoothness descriptor seen_in_training seen_in_validation refinement seconds_per_shape working_copies",
    ShapeFigures: "name exact mean_error_x100",
    PerMapFigures: "exact auc mean_error_x100 flipped",
    SegmentationReport: "accuracy mean_iou iou classes confusion shapes | seen_in_training seen_in_validation "
    "seconds_per_shape",
    RunRecord: "data train validation unit | method task classes content seconds_preparing step epoch loss accuracy "
    "core_seconds best_step notice validation_exact seconds_training",
    PatchReport: "vertices angles scales kernel seconds nnz_per_row | kernels_by_scale mass_kept mass_kept_per_scale "
    "chart_vertices",
    MatchReport: "route why model refinement remarks working_copies | unit distortion network_confidence verdict "
    "judgement mean_confidence landmarks vertices target_vertices coverage notices map out page",
    SegmentReport: "route model vertices mean_confidence classes notices labels image out",
    UnitReport: "length why",
    HumansReport: "out shapes subjects poses vertices remeshed seed seconds | kinds combine",
    FamilyReport: "out kind shapes vertices parameters remeshed seed seconds",
    PartsReport: "out data kind parts shapes missing missing_range mirrored seed seconds",
    StatisticsReport: "out page shapes vertices modes missing standard_deviations explained_variance total_variance "
    "compactness generalisation specificity groups names notices files",
    FitFigures: FIT,
    TransferReport: "what out vertices unmatched notes | rows landmarks lost joints seam_faces left_out",
    ShapeTransferReport: f"what out vertices unmatched notes {FIT} | left_out",
    RegisteredShape: f"name shape key verdict route model mean_confidence {FIT} out landmarks | largest_shown",
    RegisterReport: "template out registered kept shapes | page",
    FigureReport: "figure kind | shapes methods exact mean_error_x100",
    PageReport: "report bytes shapes exact mean_error_x100",
    KernelErrors: "l1_error_median l1_error_max row_sum_error_max l1_errors_by_scale rows_checked",
    CacheSummary: "folder entries megabytes limit_gb",
    SampleReport: "out files",
    PrepareReport: "data shapes prepared from_cache seconds cache patches descriptors",
    PatchFileReport: "vertices angles scales kernel seconds nnz_per_row shape unit from_cache peak_memory_mb "
    "l1_error_median l1_error_max written_to | kernels_by_scale mass_kept mass_kept_per_scale row_sum_error_max "
    "l1_errors_by_scale rows_checked",
    TrainingPlan: "data method preset reference_vertices vertices train validation unused augmented",
    DemoFigures: "exact mean_error_x100 coverage | refined",
    DemoReport: "exact mean_error_x100 coverage train_shapes steps first_result_seconds seconds_preparing "
    "seconds_training seconds normalisation files | refined remeshed holes",
    BenchReport: "vertices angles scales architecture repeat parts",
    DoctorReport: "python platform versions extras cores threads memory_mb cache data self_test problems",
}
"""Keys of each report: those that are always there, and after the bar those that are there where they are known."""


@pytest.mark.parametrize("kind", KEYS, ids=lambda kind: kind.__name__)
def test_keys_are_kept(kind):
    always, _, where_known = KEYS[kind].partition(" | ")
    values = dict.fromkeys(always.split(), 0)
    assert kind(**values).as_dict() == values
    full = dict.fromkeys([field.name for field in fields(kind)], 1)
    assert {*always.split(), *where_known.split()} <= set(kind(**full).as_dict())  # others may be added


@dataclass(frozen=True, eq=False)
class Inner(Report):
    length: float


@dataclass(frozen=True, eq=False)
class Outer(Report):
    name: str | None
    inner: Inner
    parts: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] | None = None


def test_reports_are_read_by_attribute_and_like_dictionaries():
    report = Outer(None, Inner(2.0))
    assert report["inner"]["length"] == report.inner.length == 2.0
    assert "by_name" not in report
    assert report.get("by_name") is None
    with pytest.raises(KeyError):
        report["by_name"]
    more = replace(report, parts=(Inner(1.0),), by_name={"a": Inner(3.0)})
    plain = {"name": None, "inner": {"length": 2.0}, "parts": [{"length": 1.0}], "by_name": {"a": {"length": 3.0}}}
    assert more.as_dict() == plain
    assert more | {"page": Inner(4.0)} == {**plain, "page": {"length": 4.0}}
    assert len(more) == 4
