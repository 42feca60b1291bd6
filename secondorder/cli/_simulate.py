"""``secondorder simulate``: run a simulation study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from secondorder.cli._streams import say, show

if TYPE_CHECKING:
    from secondorder.simulate import Study, StudyResult


def simulate(
    study: Annotated[str | None, Parameter(name="STUDY")] = None,
    /,
    *,
    set: Annotated[list[str] | None, Parameter(negative="")] = None,
    replicates: int | None = None,
    out: Path | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    processes: int = 1,
    list: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Run a simulation study: every point of its grid, every number with its Monte Carlo standard error.

    Writes results.nc, summary.csv, figure.png and the shards of finished blocks. The digits do not depend on the
    number of processes, nor on whether the run was interrupted.

    Parameters
    ----------
    study
        A file with one STUDY, or the name of one: in ./simulations, or shipped with the package.
    set
        FACTOR=LEVEL,LEVEL: other levels of a factor. Repeat for several.
    replicates
        Data sets per point. Default: the study's.
    out
        Folder for results. Default: runs/simulate/<study>.
    resume
        Go on from the finished blocks in the folder.
    processes
        Processes to use.
    list
        List the studies there are.
    """
    from secondorder.errors import InputError

    if list:
        return _list()
    if study is None:
        raise InputError("no study is named", place="simulate", remedy="give a file or a name; --list shows the names")
    chosen = _levels(set or [])
    if processes < 1:
        raise InputError(f"{processes} processes", place="--processes", remedy="give at least 1")
    from secondorder.cli._running import progress_bar, spawned
    from secondorder.simulate._files import find_declaration, load_declared
    from secondorder.simulate._runner import run_study
    from secondorder.simulate._study import Study, with_levels

    path = find_declaration(study, "simulations")
    declared = with_levels(load_declared(path, "STUDY", Study), chosen)
    folder = Path("runs/simulate") / declared.name if out is None else out
    with progress_bar(declared.name, "replicates") as progress, spawned(processes) as executor:
        result = run_study(
            declared,
            replicates=replicates,
            out=folder,
            resume=resume,
            executor=executor,
            progress=progress,
            source=path,
        )
    written = result.save(folder)
    show(result)
    written.append(_draw(declared, result, folder / "figure.png"))
    say(f"wrote {', '.join(str(path) for path in written)}")
    return 0


def _draw(study: Study, result: StudyResult, path: Path) -> Path:
    """The study's figure, written. What its own function does wrong is said; the numbers are there already."""
    from secondorder.errors import SecondOrderError, SpecError
    from secondorder.simulate._figure import bias_figure, save_figure

    if study.figure is None:
        return save_figure(bias_figure(result), path)
    try:
        return save_figure(study.figure(result), path)
    except SecondOrderError:
        raise
    except (Exception, SystemExit) as error:
        raise SpecError(
            f"its figure cannot be drawn ({type(error).__name__}: {error})",
            place=f"study {study.name}",
            remedy=f"mend the function; it gets the result and returns a figure. The numbers are in {path.parent}",
        ) from error


def _levels(given: list[str]) -> dict[str, list[str]]:
    from secondorder.errors import InputError

    chosen = {}
    for text in given:
        factor, equals, levels = text.partition("=")
        if not equals or not factor or not levels:
            raise InputError(f"{text!r}", place="--set", remedy="write FACTOR=LEVEL or FACTOR=LEVEL,LEVEL")
        chosen[factor] = levels.split(",")
    return chosen


def _list() -> int:
    from secondorder._labels._results import Table, render_table
    from secondorder.simulate._files import declarations, load_declared
    from secondorder.simulate._study import Study

    rows = []
    for name, path in declarations("simulations").items():
        study = load_declared(path, "STUDY", Study)
        rows.append((name, len(study.points()), study.replicates, study.aims))
    show(render_table(Table("", ("study", "points", "replicates", "aims"), tuple(rows))))
    return 0
