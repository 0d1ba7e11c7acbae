"""Report and figures of a run: test shapes matched and compared with the ground truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acnn.datasets.dataset import Dataset
from acnn.errors import InputError
from acnn.evaluation.results import Matched
from acnn.files import check_outputs, make_folder
from acnn.methods.run import inputs_of_run, open_run, run_folder
from acnn.progress import Progress, begin_stage
from acnn.reports import Report
from acnn.runs.compare import Comparison, compare_methods, comparison_data
from acnn.runs.evaluate import evaluate_run, unseen_shapes
from acnn.training.prepare import Failure
from acnn.viewer.comparison_figures import draw_comparison, draw_partial
from acnn.viewer.figures import COMPARISONS, SEVERAL, draw_errors, draw_filters, draw_transfer, known_kind
from acnn.viewer.images import save_png
from acnn.viewer.report import ReportData, is_report, report_of, write_report


def collect_report(
    folder: Path | str,
    data: str | Path | Dataset | None = None,
    *,
    test_list: str | None = None,
    shapes: int = 6,
    refinement: str = "auto",
    workers: int = 1,
    progress: Progress | None = None,
) -> tuple[ReportData, list[Failure]]:
    """Match some test shapes of a run and collect the data of a report.

    Parameters
    ----------
    folder : Path or str
        A run folder, or the folder of `acnn demo`, which contains one.
    data : str or Path or Dataset or None
        As for `open_dataset`; None is the dataset it was trained on.
    test_list : str or None
        Shapes, as for `Dataset.select`; None takes some that it was not trained on.
    shapes : int
        Largest number of shapes if there is no list.
    refinement : str
        As for `evaluate_run`.
    workers : int
        Number of processes that prepare shapes.
    progress : Progress or None
        Called with (done, total).

    Returns
    -------
    tuple[ReportData, list[Failure]]
        The data, and the shapes that could not be prepared.

    Raises
    ------
    InputError
        If the folder is not a run or there is no shape to show.
    """
    folder = Path(folder)
    if not (folder / "model.safetensors").is_file() and (folder / "run" / "model.safetensors").is_file():
        title, folder = folder.resolve().name, folder / "run"
    else:
        title = folder.resolve().name
        title = f"{folder.resolve().parent.name}/{title}" if title == "run" else title
    run = open_run(folder)
    run.check_matches()
    dataset = run.open_dataset(data)
    names = test_list if test_list is not None else ",".join(unseen_shapes(dataset, [run], shapes))
    kept: list[Matched] = []
    figures, failures = evaluate_run(
        run,
        dataset,
        test_list=names,
        refinement=refinement,
        workers=workers,
        progress=progress,
        keep=kept.append,
    )
    return report_of(title, dataset.name, run, kept, figures), failures


@dataclass(frozen=True, eq=False)
class PageReport(Report):
    """What `acnn report --json` prints: the file, its size, and the shapes with their figures.

    Attributes
    ----------
    report : str
        The file.
    bytes : int
    shapes : list[str]
    exact, mean_error_x100 : float
        See `EvaluationReport`.
    """

    report: str
    bytes: int
    shapes: list[str]
    exact: float
    mean_error_x100: float


def write_report_page(
    folder: Path,
    data: str | None = None,
    out: Path | None = None,
    *,
    force: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[PageReport, list[Failure]]:
    """Write the report of a run to one HTML file.

    Parameters
    ----------
    folder, data, progress
        As for `collect_report`.
    out : Path or None
        Output file; None is `report.html` in the folder.
    force : bool
        Overwrite an existing file that is no report, unless it is an input.
    **options
        `test_list`, `shapes`, `refinement` and `workers` of `collect_report`.

    Returns
    -------
    tuple[PageReport, list[Failure]]
        The report of the page, and the shapes that could not be prepared.

    Raises
    ------
    InputError
        If there is no such folder, or the file must not be overwritten.
    """
    if out is None and not folder.is_dir():
        raise InputError(f"{folder}: no such folder. Give a run folder, or an output file with --out.")
    target = folder / "report.html" if out is None else out
    earlier = [target] if is_report(target) else []
    check_outputs([target], inputs=inputs_of_run(folder, data), earlier=earlier, force=force)
    gathered, failures = collect_report(folder, data, progress=progress, **options)
    begin_stage(progress, "rendering")
    make_folder(target)
    write_report(gathered, target)
    names, figures = [shape.name for shape in gathered.shapes], gathered.figures
    size = target.stat().st_size
    return PageReport(str(target), size, names, figures["exact"], figures["mean_error_x100"]), failures


@dataclass(frozen=True, eq=False)
class FigureReport(Report):
    """What `acnn figure --json` prints.

    Attributes
    ----------
    figure, kind : str
        The file, and the kind of figure.
    shapes : list[str] or None
        Names of the shapes; None for filters.
    methods : dict or None
        Of a comparison: `exact` and `mean_error_x100` of each method.
    exact, mean_error_x100 : float or None
        Of one run.
    """

    figure: str
    kind: str
    shapes: list[str] | None = None
    methods: dict[str, dict[str, float]] | None = None
    exact: float | None = None
    mean_error_x100: float | None = None


def write_figure(
    runs: Sequence[str | Path],
    kind: str,
    out: Path,
    *,
    data: str | None = None,
    test_list: str | None = None,
    shapes: int = 5,
    refinement: str = "auto",
    up: str = "y",
    workers: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> tuple[FigureReport, list[Failure]]:
    """Render one kind of figure of a run, or of several methods, to a PNG file.

    Parameters
    ----------
    runs : sequence of str or Path
        A run folder, or the folder of `acnn demo`; for `curve`, `comparison` and `partial` also several, and names of
        methods for two shapes.
    kind : str
        `transfer`, `errors` or `filters` of one run, `curve`, `comparison` or `partial` of one or more.
    out : Path
        Output file, ending in .png.
    data, test_list, shapes, refinement, workers, progress
        As for `collect_report` and `compare_methods`.
    up : str
        Up axis of the shapes: `x`, `y` or `z`.
    force : bool
        Overwrite an existing file, unless it is an input.

    Returns
    -------
    tuple[FigureReport, list[Failure]]
        The report of the figure, and the shapes that could not be prepared or matched.

    Raises
    ------
    InputError
        For an unknown kind, another file format, a file that must not be overwritten, or a folder that is no run.
    """
    known_kind(kind)
    if out.suffix.lower() != ".png":
        raise InputError(f"{out}: figures are written as PNG. Give a name that ends in .png.")
    if up not in ("x", "y", "z"):
        raise InputError(f"--up {up}: use x, y or z.")
    if kind not in SEVERAL and len(runs) != 1:
        *shown, last = [f"'{name}'" for name in SEVERAL]
        raise InputError(
            f"A figure of kind '{kind}' shows one run: give one, or use {', '.join(shown)} or {last} for several."
        )
    inputs = [file for item in runs for file in inputs_of_run(Path(item), data)]
    check_outputs([out], inputs=inputs, force=force)
    if kind == "filters":
        save_png(draw_filters(open_run(run_folder(Path(runs[0]))).model), out)
        return FigureReport(str(out), kind), []
    options: dict[str, Any] = {"test_list": test_list, "shapes": shapes, "refinement": refinement, "workers": workers}
    if kind in COMPARISONS or len(runs) > 1:
        comparison, failures = compare_methods(runs, data, progress=progress, **options)
        begin_stage(progress, "rendering")
        if kind == "curve":
            _write_curves_of(comparison, out)
        else:
            save_png((draw_partial if kind == "partial" else draw_comparison)(comparison_data(comparison), up=up), out)
        figures = {
            result.label: {name: result.figures[name] for name in ("exact", "mean_error_x100")}
            for result in comparison.results
        }
        return FigureReport(str(out), kind, list(comparison.names), figures), failures
    gathered, failures = collect_report(runs[0], data, progress=progress, **options)
    begin_stage(progress, "rendering")
    if kind == "curve":
        _write_curve(gathered, out)
    else:
        save_png((draw_transfer if kind == "transfer" else draw_errors)(gathered, up=up), out)
    exact, error = gathered.figures["exact"], gathered.figures["mean_error_x100"]
    names = [shape.name for shape in gathered.shapes]
    return FigureReport(str(out), kind, names, exact=exact, mean_error_x100=error), failures


def _write_curve(data: ReportData, out: Path) -> None:
    from acnn.evaluation.curves import report_curves, write_curves_png

    published = data.published if data.comparable else None
    curves = report_curves(data.figures)
    write_curves_png(out, curves, data.figures["normalisation"], published=published, title=data.title)


def _write_curves_of(comparison: Comparison, out: Path) -> None:
    """The curves of several methods in one plot: before and after refinement where there is one."""
    from acnn.evaluation.curves import report_curves, write_curves_png

    curves = {
        f"{result.label} {name}".replace(" network", ""): curve
        for result in comparison.results
        for name, curve in report_curves(result.figures).items()
    }
    shapes = f"{len(comparison.names)} shape{'s' * (len(comparison.names) != 1)}"
    normalisation = comparison.results[0].figures["normalisation"]
    write_curves_png(out, curves, normalisation, title=f"{comparison.dataset.name}, {shapes}")
