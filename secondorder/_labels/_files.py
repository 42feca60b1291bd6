"""Cubes in files: NetCDF or Zarr, written whole or not at all, opened without reading the cells."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import xarray as xr

from secondorder._labels._attributes import load
from secondorder._labels._checks import check_cube
from secondorder.errors import CorruptFileError, CubeError, InputError, SecondOrderError, StorageError

__all__ = ["open_cube", "save_cube"]

ENGINE: Literal["h5netcdf"] = "h5netcdf"
FORMATS = ".nc or .zarr"


def save_cube(cube: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a cube to a NetCDF-4 file or a Zarr folder; a reader sees the old content or the new, never a part.

    Parameters
    ----------
    cube : Dataset
        A response-law cube.
    path : path
        Ends with ``.nc`` or ``.zarr`` (which needs zarr).

    Raises
    ------
    InputError
        When the path has another suffix, or its folder does not exist.
    CubeError
        When the dataset is no cube.
    StorageError
        When the disk fails or is full; what stood at `path` before is untouched.

    Examples
    --------
    >>> import tempfile, secondorder as so
    >>> rows = [{"q": q, "prompt": p, "run": r, "winner": "A"} for q in "12" for p in "xy" for r in "12"]
    >>> cube = so.make_cube(rows, item="q", facets="prompt", repeat="run", verdict="winner")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_cube(cube, f"{folder}/cube.nc")
    ...     with open_cube(f"{folder}/cube.nc") as again:
    ...         again.verdict.equals(cube.verdict)
    True
    """
    _check_names(check_cube(cube))
    target = Path(path)
    kind = _kind(target)
    if not target.parent.is_dir():
        raise InputError("the folder does not exist", place=str(target.parent), remedy="make it first")
    write = _write_netcdf if kind == ".nc" else _write_zarr
    try:
        # A symbolic link stays: what it leads to is replaced.
        _replace_whole(Path(os.path.realpath(target)), lambda fresh: write(cube.drop_encoding(), fresh))
    except SecondOrderError:
        raise
    except (OSError, RuntimeError) as fault:
        raise StorageError(
            f"the cube cannot be written ({fault})", place=str(target), remedy="make room or give another path"
        ) from None


def open_cube(path: str | os.PathLike[str]) -> xr.Dataset:
    """Open a cube from a NetCDF file or a Zarr folder; the cells are read when they are used.

    Parameters
    ----------
    path : path
        As written by :func:`save_cube`. ``with open_cube(path) as cube:`` closes the file at the end.

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        When there is no such file, or it has another suffix.
    SchemaError
        When it was written by a newer version.
    CubeError
        When it holds a dataset that is no cube.
    CorruptFileError
        When it is damaged.

    Examples
    --------
    See :func:`save_cube` for a cube that goes to a file and back.

    >>> open_cube("calls.csv")
    Traceback (most recent call last):
    secondorder.errors.InputError: calls.csv: cubes are not stored as .csv; .nc or .zarr
    """
    source = Path(path)
    kind = _kind(source)
    if not source.exists():
        raise InputError("there is no such file", place=str(source), remedy="check the path")
    try:
        if kind == ".nc":
            _refuse_damaged(source)
            cube = xr.open_dataset(source, engine=ENGINE, decode_timedelta=False)
        else:
            _need_zarr(source)
            _refuse_lost_chunks(source)
            # The metadata kept together are a copy: without it those of every array are read.
            together = (source / ".zmetadata").is_file()
            cube = xr.open_dataset(source, engine="zarr", chunks=None, consolidated=together, decode_timedelta=False)
    except SecondOrderError:
        raise
    except Exception as fault:  # Whatever the libraries say of a damaged file, it is the file that is at fault.
        raise CorruptFileError(
            f"this does not read as a cube ({type(fault).__name__}: {fault})",
            place=str(source),
            remedy="make it again from its table or ledger",
        ) from None
    try:
        return check_cube(_with_labels(cube))
    except BaseException:
        cube.close()
        raise


def _check_names(cube: xr.Dataset) -> None:
    name = next((name for name in cube.variables if "/" in str(name)), None)
    if name is not None:
        raise CubeError(
            f"{name!r} cannot be the name of a variable in a file", place="save_cube", remedy="rename it without '/'"
        )


def _kind(path: Path) -> str:
    kind = path.suffix.lower()
    if kind not in (".nc", ".zarr"):
        raise InputError(f"cubes are not stored as {kind or 'files without a suffix'}", place=str(path), remedy=FORMATS)
    return kind


def _need_zarr(path: Path) -> None:
    try:
        import zarr  # noqa: F401
    except ImportError:
        raise InputError(
            "Zarr folders need zarr", place=str(path), remedy="pip install 'secondorder[scale]', or use .nc"
        ) from None


def _with_labels(cube: xr.Dataset) -> xr.Dataset:
    """Labels are small: they are read now, as Python texts, whatever type the file gave them."""
    for name, coord in cube.coords.items():
        values = load(coord)
        if values.dtype.kind in "UT":
            cube = cube.assign_coords({name: (coord.dims, values.astype(object), coord.attrs)})
    return cube


def _write_netcdf(cube: xr.Dataset, fresh: Path) -> None:
    # Compression also brings a checksum of every chunk.
    numbers = [name for name, variable in cube.variables.items() if variable.ndim and variable.dtype.kind in "iufbM"]
    encoding = {name: {"zlib": True, "complevel": 4, "shuffle": True} for name in numbers}
    # Through memory: where the disk is full, HDF5 cannot close what it has written and ends the process with a fault.
    fresh.write_bytes(cube.to_netcdf(engine=ENGINE, format="NETCDF4", encoding=encoding))


def _write_zarr(cube: xr.Dataset, fresh: Path) -> None:
    _need_zarr(fresh)
    # Version 2 of the format: texts of any length are not specified yet in version 3.
    cube.to_zarr(fresh, mode="w", zarr_format=2, consolidated=True, write_empty_chunks=True)


def _refuse_damaged(path: Path) -> None:
    """Look into the file before h5netcdf does, whose half-opened files complain on stderr when they go away."""
    import h5py

    with h5py.File(path, "r") as file:
        dict(file.attrs)
        list(file.items())


def _refuse_lost_chunks(path: Path) -> None:
    """A chunk that is not there would read as zeros, the first class, without a word."""
    import zarr

    for name, array in zarr.open_group(path, mode="r", use_consolidated=(path / ".zmetadata").is_file()).arrays():
        if array.nchunks_initialized != array.nchunks:
            raise CorruptFileError(
                f"{array.nchunks - array.nchunks_initialized} of {array.nchunks} chunks of {name!r} are missing",
                place=str(path),
                remedy="copy the folder again, or make the cube again from its table or ledger",
            )


def _replace_whole(target: Path, write: Callable[[Path], None]) -> None:
    """Write beside the target, force it to the disk, then put it in the target's place."""
    holder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        fresh = holder / target.name
        write(fresh)
        for file in [fresh, *fresh.rglob("*")] if fresh.is_dir() else [fresh]:
            _force(file)
        _put(fresh, target, holder / "before")
        _force(target.parent)
    finally:
        shutil.rmtree(holder, ignore_errors=True)


def _put(fresh: Path, target: Path, aside: Path) -> None:
    if not target.is_dir():
        os.replace(fresh, target)
        return
    # A folder cannot be replaced in one step: the old one steps aside, and back where the new one does not go in.
    os.replace(target, aside)
    try:
        os.replace(fresh, target)
    except OSError:
        os.replace(aside, target)
        raise


def _force(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        # Some file systems do not offer this for folders.
        with contextlib.suppress(OSError) if path.is_dir() else contextlib.nullcontext():
            os.fsync(handle)
    finally:
        os.close(handle)
